// step_kernels.h: compiled kernels of a Program's regions over rows, ready to launch.
// Contract: made when a Program is loaded. Throws Error (kind device, code cuda.kernels) if there is no compiler, or if
// the blocks of a kernel cannot run at the same time on this device; a program without such regions needs neither. A
// launch runs a region a number of times. check() reports a wait that took too long, after the launch.
// Not here: the source (executors/cuda_planner/print/step_kernel.h), when to launch (runnable.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executors/cuda/api.h"
#include "executors/cuda/arena.h"
#include "executors/cuda/memory_pool.h"
#include "executors/cuda/nvrtc.h"
#include "executors/cuda/slot_kernel.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

// Data for launching a step kernel.
struct BoundSteps {
  const void* kernel = nullptr;
  std::string name, label;
  bool compiled = false;  // compiled at load; otherwise the code existed
  StepTiling tiling;
  std::uint32_t shared_bytes = 0;
  void* scratch = nullptr;
  std::unique_ptr<SlotKernel::Member> slot;  // if launches are shared; the members below are then empty
  std::vector<std::byte> arguments;  // StepArguments of kernels/cuda/tile/step.h; the last word is the repeat count
};

// A compiled step kernel; `compiled` as in BoundSteps.
struct StepCode : StepKernel {
  bool compiled = false;
  bool spills = false;  // its threads have too few registers
};
using StepCodes = std::shared_future<std::vector<StepCode>>;
// Starts to compile for a device that needs no context yet, since creating one takes about as long. get() throws its
// errors. Invalid without step kernels. The Program must outlive it.
StepCodes compile_steps(const Program& program, int device);

// Step kernels of the last Programs that share launches: equal ones are compiled once. Thread-safe. The destructor
// waits for compilations, so that none is running when the process ends.
class SharedStepCodes {
 public:
  StepCodes find(const Program& program, int device);

 private:
  struct One {
    std::shared_ptr<const Program> program;
    int device;
    StepCodes codes;
    bool failed() const;
  };
  std::mutex mutex_;
  std::vector<One> last_;
};

// State of all runnables of an executor that share launches (slot_kernel.h).
struct SharedLaunches {
  MemoryPool memory;
  SharedStepCodes codes;
};

class StepKernels {
 public:
  StepKernels(Api& api, std::vector<StepCode> kernels, cudaStream_t stream);

  // `mirror`: host memory of the polled block.
  BoundSteps bind(const Program& program, const Phase& phase, const Region& region, const Arena& arena,
                  std::byte* mirror) const;
  void launch(BoundSteps& steps, std::uint64_t times, bool capturing);
  void copy_fault();   // for check(), once the stream is synchronized
  void check() const;  // throws Error (kind device, code cuda.wait)

 private:
  struct Kernel {
    StepCode kernel;
    std::unique_ptr<CompiledKernels> code;  // null for a kernel in slots
  };
  Api& api_;
  cudaStream_t stream_;
  std::map<std::string, Kernel> kernels_;  // kernels by name
  void* fault_ = nullptr;                  // device address; null if all kernels run in slots
  Api::Memory pinned_;
  std::uint32_t* seen_ = nullptr;  // host copy, pinned; null without fault_
};

}  // namespace graphrun::cuda
