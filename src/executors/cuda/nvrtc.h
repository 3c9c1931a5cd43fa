// nvrtc.h: kernels compiled when a program is loaded, by NVRTC, which is opened when it is first needed; where it is
// not installed that is an Error.
// Contract: the same source gives the same code; what was compiled once is kept for the process, and in the cache on
// disk for the next one; sources that differ do not wait for each other. Code of a kernel lives as long as its
// CompiledKernels. Leaves to others: what is compiled (element_kernels.h), the cache (kernel_cache.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executors/cuda/compiled_code.h"
#include "executors/cuda/kernel_cache.h"

namespace graphrun::cuda {

// As the compiler names it: "sm_90a". With all that this device has, since the code is for no other one.
std::string architecture_of(int major, int minor);

// As one text; or in pieces, too, which are compiled side by side and linked to the same kernel, of so many threads a
// block: where there is a linker (linker.h).
struct KernelSource {
  KernelSource(std::string as_text, std::vector<std::string> in_pieces = {}, std::uint32_t of_threads = 0)
      : text(std::move(as_text)), pieces(std::move(in_pieces)), threads(of_threads) {}

  KernelSource(const char* as_text) : KernelSource(std::string(as_text)) {}

  std::string text;
  std::vector<std::string> pieces;
  std::uint32_t threads;
};

struct ObtainedCode {
  CompiledCode code;
  bool compiled = false;  // by NVRTC, now; otherwise it lay in the cache
};
// A source may begin with this and an option of the compiler: it is left out where registers would be spilled with it.
inline constexpr std::string_view kOptionPrefix = "// nvrtc ";

// Needs no device. Throws std::logic_error with the compiler's words when the source is wrong, Error (kind device) when
// the compiler is older than the architecture.
ObtainedCode obtain_code(const KernelSource& source, const std::string& architecture, const KernelCache& cache);

// The same with the cache of the environment, once per process: `compiled` is said to the first who asks.
const CompiledCode& compiled_code(const KernelSource& source, const std::string& architecture,
                                  bool* compiled = nullptr);

// Before CompiledKernels asks for them: those that are not there yet side by side, a thread for each. The device needs
// no context. Whether each was compiled now. Throws what one of them threw.
std::vector<bool> compile_ahead(const std::vector<KernelSource>& sources, int device);

class CompiledKernels {
 public:
  // For the current device.
  explicit CompiledKernels(const KernelSource& source);
  ~CompiledKernels();
  CompiledKernels(const CompiledKernels&) = delete;
  CompiledKernels& operator=(const CompiledKernels&) = delete;

  const void* find(const std::string& name) const;     // what cudaLaunchKernel takes
  void* find_variable(const std::string& name) const;  // its address on the device
  const CompiledCode& code() const { return *code_; }
  bool compiled() const { return compiled_; }  // for this object; otherwise the code was there

 private:
  const CompiledCode* code_;
  bool compiled_ = false;
  cudaLibrary_t library_ = nullptr;
};

}  // namespace graphrun::cuda
