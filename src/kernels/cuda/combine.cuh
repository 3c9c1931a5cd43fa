// combine.cuh: joins the parts of results that several blocks computed, (parts, count), if the parts are many.
// Contract: the order depends on the number of parts only. Blocks of kCombineThreads threads, kCombineResults results
// each.
#pragma once

#include <cstdint>

#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

inline constexpr std::uint64_t kManyParts = 32;  // from here on, one thread per result would wait for memory too often
inline constexpr std::uint32_t kCombineThreads = 256, kCombineResults = 32;

inline Grid combine_grid(std::uint64_t count) {
  return {static_cast<std::uint32_t>((count + kCombineResults - 1) / kCombineResults)};
}

// Thread (x, y) of 32 x 8 joins parts y, y + 8, ... of the block's result x; thread (x, 0) then joins the eight, gets
// the total and returns true.
template <class State, class Join>
__device__ bool combine_parts(const State* partial, std::uint64_t parts, std::uint64_t count, std::uint64_t result,
                              Join join, State& total) {
  constexpr unsigned kShares = kCombineThreads / kCombineResults;
  __shared__ State shares[kShares][kCombineResults];
  const unsigned x = threadIdx.x % kCombineResults, y = threadIdx.x / kCombineResults;
  if (result < count) {
    State share = partial[y * count + result];
    std::uint64_t part = y + kShares;
    constexpr int kAhead = 16;  // loads in flight, if there are as many parts
    for (; parts > kAhead * kShares && part < parts; part += kAhead * kShares) {
      State next[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (part + i * kShares < parts) next[i] = partial[(part + i * kShares) * count + result];
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (part + i * kShares < parts) share = join(share, next[i]);
      }
    }
#pragma unroll 8
    for (; part < parts; part += kShares) share = join(share, partial[part * count + result]);
    shares[y][x] = share;
  }
  __syncthreads();
  if (y > 0 || result >= count) return false;
  total = shares[0][x];
  for (unsigned share = 1; share < kShares; ++share) total = join(total, shares[share][x]);
  return true;
}

}  // namespace graphrun::cuda
