// loop.h: the kernels that make a CUDA graph repeat its step without the host.
// Contract: a graph has two loops: the body of one is a block of steps, that of the other a single step. `arm` sets how
// often each runs; `begin`, the first node, takes these counts over; `advance`, the last node of a body, decrements and
// decides. Counts of a runnable are in one slot of a device array owned by this module, not in the arena.
#pragma once

#include <cstdint>

namespace graphrun::cuda {

inline constexpr std::uint32_t kLoopSlots = 8192;  // maximum number of runnables per process and device at a time

struct LoopKernels {
  const void* arm;      // (u32 slot, u64 blocks, u64 singles)
  const void* begin;    // (u32 slot, u64 handle of the block loop, u64 handle of the single loop)
  const void* advance;  // (u32 slot, u32 loop: 0 blocks, 1 singles; u64 handle)
};
LoopKernels loop_kernels();

}  // namespace graphrun::cuda
