#include "kernels/cuda/combine_shards.h"

#include "kernels/cuda/launch.cuh"

namespace graphrun::cuda {
namespace {

// Calls store(i, load(i)) for elements [begin, end), with several loads in flight.
template <class Load, class Store>
__device__ void for_elements(std::uint64_t begin, std::uint64_t end, Load load, Store store) {
  constexpr int kAtOnce = 4;
  const std::uint64_t stride = thread_count();
  for (std::uint64_t i = begin + thread_index(); i < end; i += kAtOnce * stride) {
    float x[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) x[k] = i + k * stride < end ? load(i + k * stride) : 0.0f;
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (i + k * stride < end) store(i + k * stride, x[k]);
  }
}

__global__ void pack_shard(const SharedValue* values, float* block) {
  const SharedValue value = values[blockIdx.y];
  for_elements(
      0, value.count, [&](std::uint64_t i) { return value.from[i]; },
      [&](std::uint64_t i, float x) { block[value.begin + i] = x; });
}

__global__ void combine_shards(const SharedValue* values, SharedBlocks blocks) {
  const SharedValue value = values[blockIdx.y];
  const std::uint64_t value_end = value.begin + value.count, range_end = blocks.first + blocks.count;
  float* const to = blocks.sums != nullptr ? blocks.sums - blocks.first : value.to - value.begin;
  for_elements(
      value.begin < blocks.first ? blocks.first : value.begin, value_end < range_end ? value_end : range_end,
      [&](std::uint64_t i) { return combined_at(blocks, value.op, i - blocks.first); },
      [&](std::uint64_t i, float x) { to[i] = x; });
}

}  // namespace

CombineKernels combine_kernels() {
  return {reinterpret_cast<const void*>(pack_shard), reinterpret_cast<const void*>(combine_shards)};
}

}  // namespace graphrun::cuda
