// dynamic_library.h: a library of the CUDA Toolkit that is opened on first use and kept open.
// Contract: throws Error (kind device, code "cuda.library") that begins with the feature that needs it, if it cannot be
// loaded or lacks a function. It is never unloaded, so that objects that outlive main() may call it: allocate it with
// new, and keep it. Not here: its functions (cublaslt.cpp, nvrtc.cpp, profile_cupti.cpp).
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "graphrun/error.h"

namespace graphrun::cuda {

class DynamicLibrary {
 public:
  // `folder`: searched after the usual places. `package`: has the library.
  DynamicLibrary(const std::string& name, std::string_view need, std::string_view hint = {},
                 const std::string& folder = {},
                 std::string_view package = "the CUDA Toolkit, and of graphrun[cuda13] for Python")
      : name_(fmt::format("{} {}", need, name)), library_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ != nullptr) return;
    const char* const why = dlerror();  // error of the search in the usual places
    const std::string reason = why != nullptr ? why : "it does not load";
    if (!folder.empty()) library_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) return;
    throw Error(ErrorKind::device, "cuda.library", fmt::format("{}: {}", name_, reason),
                fmt::format("it is part of {}; LD_LIBRARY_PATH can name its folder{}", package, hint));
  }

  template <class Function>
  Function find(const char* function) const {
    if (void* found = dlsym(library_, function)) return reinterpret_cast<Function>(found);
    throw Error(ErrorKind::device, "cuda.library", fmt::format("{}, which has no function '{}'", name_, function));
  }

 private:
  std::string name_;  // need and file name, for messages
  void* library_;
};

}  // namespace graphrun::cuda
