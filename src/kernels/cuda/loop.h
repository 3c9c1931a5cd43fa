// loop.h: the kernels that make a CUDA graph repeat its step without the host.
// Contract: a graph has two loops, one whose body is a block of steps and one whose body is a single step. `arm` says
// how often each runs; `begin`, the first node, takes that over; `advance`, the last node of a body, counts down and
// decides. The numbers of a runnable lie in one slot of a device array that belongs to this module, not to the arena.
#pragma once

#include <cstdint>

namespace graphrun::cuda {

inline constexpr std::uint32_t kLoopSlots = 1024;  // runnables of one process and device at a time

struct LoopKernels {
  const void* arm;      // (u32 slot, u64 blocks, u64 singles)
  const void* begin;    // (u32 slot, u64 handle of the block loop, u64 handle of the single loop)
  const void* advance;  // (u32 slot, u32 loop: 0 blocks, 1 singles; u64 handle)
};
LoopKernels loop_kernels();

}  // namespace graphrun::cuda
