// arena.h: the device memory of one program: one allocation of exactly the bytes of the plan, buffers at its offsets.
// Contract: with GRAPHRUN_DEBUG_ARENA=split in the environment each storage is an allocation of its own, so that
// compute-sanitizer sees an access that leaves its buffer and a value that is read before it is written; the numbers
// are the same. Throws Error when the device has no room. Leaves to others: what lies in it, and when (runnable.cpp).
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "executors/cuda/api.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

class Arena {
 public:
  Arena(Api& api, const Program& program);

  std::byte* at(BufferId id) const { return address_[id]; }
  void clear_states(cudaStream_t stream) const;                    // to zero
  void copy_polled(std::byte* mirror, cudaStream_t stream) const;  // the polled block, to host memory of its size

 private:
  struct Free {
    Api* api;
    void operator()(std::byte* memory) const noexcept { api->release(memory); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  std::byte* allocate(std::uint64_t bytes);

  Api& api_;
  const Program& program_;
  PollBlock polled_;
  bool split_ = false;
  std::vector<Memory> memory_;
  std::vector<std::byte*> address_;  // of each buffer
};

}  // namespace graphrun::cuda
