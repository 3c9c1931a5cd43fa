// nvrtc.h: compiles kernels at load with NVRTC, which is opened on first use; Error if it is not installed.
// Contract: the same source gives the same code. Compiled code is kept for the process, and in the disk cache for the
// next one; different sources do not wait for each other. Code of a kernel is valid as long as its CompiledKernels
// exists. Not here: the sources (element_kernels.h), the cache (kernel_cache.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "executors/cuda/compiled_code.h"
#include "executors/cuda/kernel_cache.h"
#include "executors/cuda_planner/print/step_kernel.h"

namespace graphrun::cuda {

// Compiler's name of the architecture, such as "sm_90a". Enables all features of this device, because the code is for
// no other one.
std::string architecture_of(int major, int minor);
std::string architecture_of_device(int device);  // the device needs no context

struct ObtainedCode {
  CompiledCode code;
  bool compiled = false;  // compiled by this call; otherwise read from the cache
};
// Prefix of a source's first line, followed by a compiler option. The option is dropped if it causes register spills.
inline constexpr std::string_view kOptionPrefix = "// nvrtc ";

// Compiles the pieces of a source if there is a linker for them (linker.h). Needs no device. Throws std::logic_error
// with the compiler's message if the source is invalid, Error (kind device) if the compiler is older than the
// architecture.
ObtainedCode obtain_code(const KernelSource& source, const std::string& architecture, const KernelCache& cache);

// Same with the cache of the environment, once per process; sets `compiled` for the first caller.
const CompiledCode& compiled_code(const KernelSource& source, const std::string& architecture,
                                  bool* compiled = nullptr);

class CompiledKernels {
 public:
  // Loads the kernels on the current device.
  explicit CompiledKernels(const KernelSource& source);
  ~CompiledKernels();
  CompiledKernels(const CompiledKernels&) = delete;
  CompiledKernels& operator=(const CompiledKernels&) = delete;

  const void* find(const std::string& name) const;     // argument of cudaLaunchKernel
  void* find_variable(const std::string& name) const;  // address on the device
  bool compiled() const { return compiled_; }          // compiled for this object; otherwise the code existed

 private:
  bool compiled_ = false;
  cudaLibrary_t library_ = nullptr;
};

}  // namespace graphrun::cuda
