#include "kernels/cuda/autotune.h"

#include "kernels/cuda/launch.cuh"

namespace graphrun::cuda {
namespace {

__device__ std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

__global__ void trial_fill(float* to, std::uint64_t count, std::uint32_t seed) {
  for (std::uint64_t i = thread_index(); i < count; i += thread_count()) {
    const std::uint64_t word = mix(i * 4 + seed);
    to[i] = static_cast<float>(static_cast<std::int32_t>(word >> 32)) * 0x1p-31f;
  }
}

__global__ void trial_clear(std::uint64_t* sum) {
  *sum = 0;
}

// Sums integers, so the order does not matter.
__global__ void trial_checksum(const float* from, std::uint64_t count, unsigned long long* sum) {
  unsigned long long mine = 0;
  for (std::uint64_t i = thread_index(); i < count; i += thread_count()) {
    mine += mix(i << 32 ^ __float_as_uint(from[i]));
  }
  atomicAdd(sum, mine);
}

}  // namespace

AutotuneKernels autotune_kernels() {
  return {reinterpret_cast<const void*>(trial_fill), reinterpret_cast<const void*>(trial_clear),
          reinterpret_cast<const void*>(trial_checksum)};
}

}  // namespace graphrun::cuda
