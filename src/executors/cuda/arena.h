// arena.h: device memory of one program: one allocation of exactly the planned bytes, with buffers at planned offsets.
// Contract: with GRAPHRUN_DEBUG_ARENA=split in the environment, each storage is a separate allocation, so that
// compute-sanitizer finds accesses beyond a buffer and reads before writes; results are identical. Throws Error if
// device memory is exhausted. Not here: contents of the arena and their timing (runnable.cpp).
#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <vector>

#include "executors/cuda/api.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

class Arena {
 public:
  Arena(Api& api, const Program& program, PollBlock polled);  // polled: the polled block, or one that contains it

  static bool is_split();  // each storage is an allocation
  std::byte* at(BufferId id) const { return address_[id]; }
  std::span<const std::byte> polled() const {
    return {memory_.front().get() + polled_.offset, polled_.bytes};
  }                                                                // not split
  std::span<std::byte> states() const;                             // start of the arena, to the last state; not split
  void clear_states(cudaStream_t stream) const;                    // fills with zeros
  void copy_polled(std::byte* mirror, cudaStream_t stream) const;  // copies the polled block to host memory of its size

 private:
  std::byte* allocate(std::uint64_t bytes);

  Api& api_;
  const Program& program_;
  PollBlock polled_;
  bool split_ = false;
  std::vector<Api::Memory> memory_;
  std::vector<std::byte*> address_;  // address of each buffer
};

}  // namespace graphrun::cuda
