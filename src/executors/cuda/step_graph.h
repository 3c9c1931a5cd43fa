// step_graph.h: a step captured once, and a CUDA graph that repeats it n times in one launch.
// Contract: the graph holds two loops (conditional nodes): one over a block of `unroll` copies of the step, one over a
// single step, so any n fits; the counts lie on the device and are changed only when n changes. A step that allocates
// memory inside the graph is an Error.
// Leaves to others: what the step launches (runnable.cpp), the loop kernels (kernels/cuda/loop.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

#include "executors/cuda/api.h"

namespace graphrun::cuda {

// A place for the loop counts of one runnable. Thread-safe.
class LoopSlot {
 public:
  LoopSlot();  // throws Error (kind device) when there are too many runnables
  ~LoopSlot();
  LoopSlot(const LoopSlot&) = delete;
  LoopSlot& operator=(const LoopSlot&) = delete;
  std::uint32_t number() const { return number_; }

 private:
  std::uint32_t number_ = 0;
};

class StepGraph {
 public:
  // `enqueue` puts the work of one step on the stream.
  StepGraph(Api& api, cudaStream_t stream, std::uint32_t slot, std::uint32_t unroll,
            const std::function<void()>& enqueue);
  ~StepGraph();
  StepGraph(StepGraph&& other) noexcept;
  StepGraph& operator=(StepGraph&&) = delete;

  std::uint32_t unroll() const { return unroll_; }
  void launch(Api& api, cudaStream_t stream) const;  // as often as the slot says

 private:
  std::uint32_t unroll_ = 1;
  cudaGraphExec_t executable_ = nullptr;  // null: a step without work
};

// Sets the counts of the slot for launches after this one: n steps in a graph of the given unroll.
void arm_loops(Api& api, cudaStream_t stream, std::uint32_t slot, std::uint32_t unroll, std::uint64_t n);

}  // namespace graphrun::cuda
