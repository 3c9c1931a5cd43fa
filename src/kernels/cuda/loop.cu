#include "kernels/cuda/loop.h"

#include <cuda_runtime.h>

namespace graphrun::cuda {
namespace {

struct Trips {
  std::uint64_t wanted[2];
  std::uint64_t left[2];
};
__device__ Trips trips[kLoopSlots];

__global__ void loop_arm(std::uint32_t slot, std::uint64_t blocks, std::uint64_t singles) {
  trips[slot].wanted[0] = blocks;
  trips[slot].wanted[1] = singles;
}

__global__ void loop_begin(std::uint32_t slot, cudaGraphConditionalHandle blocks, cudaGraphConditionalHandle singles) {
  Trips& mine = trips[slot];
  mine.left[0] = mine.wanted[0];
  mine.left[1] = mine.wanted[1];
  cudaGraphSetConditional(blocks, mine.left[0] != 0 ? 1u : 0u);
  cudaGraphSetConditional(singles, mine.left[1] != 0 ? 1u : 0u);
}

__global__ void loop_advance(std::uint32_t slot, std::uint32_t loop, cudaGraphConditionalHandle handle) {
  const std::uint64_t left = --trips[slot].left[loop];
  cudaGraphSetConditional(handle, left != 0 ? 1u : 0u);
}

}  // namespace

LoopKernels loop_kernels() {
  return {reinterpret_cast<const void*>(loop_arm), reinterpret_cast<const void*>(loop_begin),
          reinterpret_cast<const void*>(loop_advance)};
}

}  // namespace graphrun::cuda
