// step_graph.h: captures a step once, with independent launches in parallel, in a CUDA graph that repeats it n times
// per launch.
// Contract: the graph holds two loops (conditional nodes): one over a block of `unroll` copies of the step, one over a
// single step, so any n fits. The counts are on the device and are written only if n changes. A step that allocates
// memory inside the graph is an Error.
// Not here: launches of the step (runnable.cpp), the loop kernels (kernels/cuda/loop.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <span>

#include "executors/cuda/api.h"

namespace graphrun::cuda {

// Slot for the loop counts of one runnable. The constructor and destructor are thread-safe.
class LoopSlot {
 public:
  LoopSlot();  // throws Error (kind device) if there are too many runnables
  ~LoopSlot();
  LoopSlot(const LoopSlot&) = delete;
  LoopSlot& operator=(const LoopSlot&) = delete;
  std::uint32_t number() const { return number_; }
  // Sets the counts for launches after this one, unless they are set: n steps in a graph of the given unroll.
  void arm(Api& api, cudaStream_t stream, std::uint32_t unroll, std::uint64_t n);

 private:
  std::uint32_t number_ = 0;
  // Arguments of the last arm().
  std::uint32_t unroll_ = 0;
  std::uint64_t steps_ = 0;
};

class StepGraph {
 public:
  // A launch of a step. `after` lists the launches it waits for, all of them earlier in the list.
  struct Part {
    std::function<void()> enqueue;  // enqueues its work on the stream
    std::span<const std::uint32_t> after;
  };
  StepGraph(Api& api, cudaStream_t stream, std::uint32_t slot, std::uint32_t unroll, std::span<const Part> parts);

  std::uint32_t unroll() const { return unroll_; }
  void launch(Api& api, cudaStream_t stream) const;  // repeats the step as the slot's counts say

 private:
  std::uint32_t unroll_ = 1;
  ExecutableGraph executable_;  // null for a step without work
};

}  // namespace graphrun::cuda
