// nvrtc.h: kernels compiled when a program is loaded, by NVRTC, which is opened when it is first needed; where it is
// not installed that is an Error.
// Contract: the same source gives the same code; what was compiled once is kept for the process, and sources that
// differ do not wait for each other. Code of a kernel lives as long as its CompiledKernels.
// Leaves to others: what is compiled (element_kernels.h).
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <vector>

namespace graphrun::cuda {

// As the compiler names it: "sm_90a". With all that this device has, since the code is for no other one.
std::string architecture_of(int major, int minor);

// Needs no device. Throws std::logic_error with the compiler's words when the source is wrong, Error (kind device) when
// the compiler is older than the architecture.
const std::vector<char>& compiled_code(const std::string& source, const std::string& architecture);

class CompiledKernels {
 public:
  // For the current device.
  explicit CompiledKernels(const std::string& source);
  ~CompiledKernels();
  CompiledKernels(const CompiledKernels&) = delete;
  CompiledKernels& operator=(const CompiledKernels&) = delete;

  const void* find(const std::string& name) const;  // what cudaLaunchKernel takes

 private:
  cudaLibrary_t library_ = nullptr;
};

}  // namespace graphrun::cuda
