#include "executors/cuda/nvrtc.h"

#include <fmt/format.h>
#include <nvrtc.h>

#include <array>
#include <stdexcept>

#include "executors/cuda/device_sources.h"
#include "executors/cuda/dynamic_library.h"
#include "executors/cuda/once_per_key.h"
#include "graphrun/error.h"

namespace graphrun::cuda {
namespace {

struct NvrtcFunctions {
  DynamicLibrary library{fmt::format("libnvrtc.so.{}", CUDART_VERSION / 1000),
                         "the kernels of this model are compiled by", "; --no-fuse does without it"};
#define X(name) decltype(&nvrtc##name) name = library.find<decltype(name)>("nvrtc" #name);
  // clang-format off
  X(CreateProgram) X(DestroyProgram) X(CompileProgram) X(GetProgramLogSize) X(GetProgramLog) X(GetCUBINSize)
  X(GetCUBIN)
  // clang-format on
#undef X
};
const NvrtcFunctions& nvrtc() {
  static const NvrtcFunctions* const loaded = new NvrtcFunctions;
  return *loaded;
}

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error(ErrorKind::device, "cuda.call", fmt::format("load: {} failed: {}", call, cudaGetErrorString(status)));
}

std::vector<char> compile(const std::string& source, const std::string& architecture) {
  const NvrtcFunctions& f = nvrtc();
  nvrtcProgram program = nullptr;
  std::vector<const char*> texts, names;
  for (const DeviceSource& header : kDeviceSources) {
    texts.push_back(header.text);
    names.push_back(header.name);
  }
  if (f.CreateProgram(&program, source.c_str(), "kernels.cu", static_cast<int>(names.size()), texts.data(),
                      names.data()) != NVRTC_SUCCESS)
    throw std::logic_error("NVRTC takes no program");
  const std::string target = "--gpu-architecture=" + architecture;
  const std::array options{target.c_str(), "--std=c++17", "--fmad=false", "--device-as-default-execution-space"};
  const nvrtcResult status = f.CompileProgram(program, static_cast<int>(options.size()), options.data());
  std::size_t size = 0;
  std::string log;
  std::vector<char> code;
  if (status != NVRTC_SUCCESS) {
    if (f.GetProgramLogSize(program, &size) == NVRTC_SUCCESS) {
      log.resize(size);
      f.GetProgramLog(program, log.data());
    }
  } else if (f.GetCUBINSize(program, &size) == NVRTC_SUCCESS) {
    code.resize(size);
    f.GetCUBIN(program, code.data());
  }
  f.DestroyProgram(&program);
  if (status == NVRTC_ERROR_INVALID_OPTION) {  // the only one that depends on the machine
    throw Error(ErrorKind::device, "cuda.architecture",
                fmt::format("libnvrtc.so.{}, which compiles the kernels of a model, cannot do so for this GPU ({})",
                            CUDART_VERSION / 1000, architecture),
                "a GPU newer than the library needs a newer CUDA Toolkit; --executor=cpu runs anywhere");
  }
  if (code.empty()) throw std::logic_error(fmt::format("a generated kernel does not compile:\n{}\n{}", log, source));
  return code;
}

}  // namespace

// From 9.0 on the letter stands for instructions that no other device has.
std::string architecture_of(int major, int minor) {
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

const std::vector<char>& compiled_code(const std::string& source, const std::string& architecture) {
  static OncePerKey<std::string, std::vector<char>> known;
  return known.get(architecture + "\n" + source, [&] { return compile(source, architecture); });
}

CompiledKernels::CompiledKernels(const std::string& source) {
  int device = 0, major = 0, minor = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  const std::string architecture = architecture_of(major, minor);
  const std::vector<char>& code = compiled_code(source, architecture);
  check(cudaLibraryLoadData(&library_, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), "cudaLibraryLoadData");
}

CompiledKernels::~CompiledKernels() {
  if (library_ != nullptr) cudaLibraryUnload(library_);
}

const void* CompiledKernels::find(const std::string& name) const {
  cudaKernel_t kernel = nullptr;
  check(cudaLibraryGetKernel(&kernel, library_, name.c_str()), "cudaLibraryGetKernel");
  return reinterpret_cast<const void*>(kernel);
}

}  // namespace graphrun::cuda
