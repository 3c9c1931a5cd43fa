// dynamic_library.h: a library of the CUDA Toolkit that is opened when it is first needed, and kept.
// Contract: throws Error (kind device, code "cuda.library") that begins with what needs it when it is not installed or
// lacks a function. Leaves to others: which functions (cublaslt.cpp, nvrtc.cpp, profile_cupti.cpp).
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "graphrun/error.h"

namespace graphrun::cuda {

class DynamicLibrary {
 public:
  // `folder`: where it may lie beside the usual places.
  DynamicLibrary(const std::string& name, std::string_view need, std::string_view hint = {},
                 const std::string& folder = {})
      : name_(name), library_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr && !folder.empty()) library_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) return;
    const char* why = dlerror();
    throw Error(ErrorKind::device, "cuda.library",
                fmt::format("{} {}: {}", need, name, why != nullptr ? why : "it does not load"),
                fmt::format("it is part of the CUDA Toolkit; LD_LIBRARY_PATH can name its folder{}", hint));
  }

  template <class Function>
  Function find(const char* function) const {
    if (void* found = dlsym(library_, function)) return reinterpret_cast<Function>(found);
    throw Error(ErrorKind::device, "cuda.library", fmt::format("{} has no function '{}'", name_, function));
  }

 private:
  std::string name_;
  void* library_;
};

}  // namespace graphrun::cuda
