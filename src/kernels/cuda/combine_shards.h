// combine_shards.h: kernels that combine values over the shards of a batch, one on each rank.
// Contract: a rank packs its values into a block. `combine` adds up elements [first, first + count) of the blocks of
// all ranks in the fixed tree of session/compiling/members.h, over neighbours first, and writes either a block again or
// the combined values. The grid's y is the value. Not here: moving blocks between ranks (executors/cuda/rank_group.h).
#pragma once

#include <cstdint>

#include "kernels/dims.h"  // GRAPHRUN_HOST_DEVICE

namespace graphrun::cuda {

struct SharedValue {
  const float* from;
  float* to;
  std::uint64_t begin, count;  // elements of a block
  std::int32_t op;             // ShardParams::combine: 0: sum, 1: product, 2: max, 3: min
};

// Elements of several blocks. Rank r has blocks + r * stride, but rank `own` has `mine`; own < 0: none.
struct SharedBlocks {
  const float* blocks;
  std::uint64_t stride;
  int ranks, own;
  const float* mine;
  std::uint64_t first, count;
  float* sums;  // null: the values are complete, and go to SharedValue::to
};

struct CombineKernels {
  const void* pack;     // (const SharedValue* values, float* block)
  const void* combine;  // (const SharedValue* values, SharedBlocks)
};
CombineKernels combine_kernels();

GRAPHRUN_HOST_DEVICE inline float combined(std::int32_t op, float x, float y) {
  if (op == 0) return x + y;
  if (op == 1) return x * y;
  if (op == 2) return x >= y || x != x ? x : y;
  return x <= y || x != x ? x : y;
}

// Element i of the range, combined over all ranks, whose number is a power of two up to kMaxShards.
GRAPHRUN_HOST_DEVICE inline float combined_at(const SharedBlocks& b, std::int32_t op, std::uint64_t i) {
  const auto at = [&](int r) {
    return r == b.own ? b.mine[i] : b.blocks[static_cast<std::uint64_t>(r) * b.stride + i];
  };
  if (b.ranks == 1) return at(0);
  float waiting[9];  // waiting[l]: of 2^l ranks
  for (int r = 0;; r += 2) {
    float x = combined(op, at(r), at(r + 1));
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int level = 1; level < 9; ++level) {
      if ((r >> level & 1) == 0) {
        if (r + 2 == b.ranks) return x;
        waiting[level] = x;
        break;
      }
      x = combined(op, waiting[level], x);
    }
  }
}

}  // namespace graphrun::cuda
