// step_kernels.h: the kernels of a Program's regions over rows, compiled and ready to be launched.
// Contract: made when a Program is loaded. Throws Error (kind device, code cuda.kernels) where they cannot be had: no
// compiler, or a kernel whose blocks do not run at the same time here; a program without such regions needs neither.
// A launch runs a region a number of times; a wait in it that took too long is told by check(), after the launch.
// Leaves to others: the text (executors/cuda_planner/step_kernel.h), when to launch (runnable.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executors/cuda/api.h"
#include "executors/cuda/arena.h"
#include "executors/cuda/nvrtc.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

// What a launch of one needs.
struct BoundSteps {
  const void* kernel = nullptr;
  std::string name, label;
  bool compiled = false;  // when the program was loaded; otherwise its code was there
  StepTiling tiling;
  std::uint32_t shared_bytes = 0;
  void* scratch = nullptr;
  std::vector<std::byte> arguments;  // StepArguments of kernels/cuda/tile/step.h; the last word is how often
};

// Their code; `compiled` as of BoundSteps.
struct StepCode {
  struct Kernel {
    std::string name;
    KernelSource source;
    std::vector<BufferId> pointers;
    bool compiled = false;
  };
  std::vector<Kernel> kernels;
};
// Begins to compile for a device, which needs no context yet: making one takes about as long. The Program must live
// until the code is there. What could not be compiled is thrown by get().
std::future<StepCode> compile_steps(const Program& program, int device);

class StepKernels {
 public:
  StepKernels(Api& api, const StepCode& code, cudaStream_t stream);
  ~StepKernels();
  StepKernels(const StepKernels&) = delete;
  StepKernels& operator=(const StepKernels&) = delete;

  BoundSteps bind(const Program& program, const Phase& phase, const Region& region, const Arena& arena) const;
  void launch(BoundSteps& steps, std::uint64_t times, bool capturing);
  void copy_fault();   // to be looked at by check() when the stream is synchronised
  void check() const;  // throws Error (kind device, code cuda.wait)

 private:
  struct Kernel {
    std::unique_ptr<CompiledKernels> code;
    std::vector<BufferId> pointers;
    bool compiled = false;
  };
  std::uint32_t read_number(const CompiledKernels& code, const std::string& name) const;

  Api& api_;
  cudaStream_t stream_;
  std::map<std::string, Kernel> kernels_;  // by name
  void* fault_;                            // on the device
  std::uint32_t* seen_ = nullptr;          // pinned
};

// Whether the program has regions over rows that are kernels.
bool has_step_kernels(const Program& program);

}  // namespace graphrun::cuda
