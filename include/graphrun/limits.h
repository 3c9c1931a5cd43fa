// limits.h: upper bounds on sizes, so that later code need not check sums and products of extents for overflow.
// model-format.md lists them.
// Contract: readers of files and Programs reject larger values by name. Not here: memory limits (fit_batch.h).
#pragma once

#include <cstdint>

namespace graphrun {

// Elements of a tensor; an extent of 0 counts as 1 here. So no stride, offset or number of bytes of a tensor overflows.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

// Samples of a batch: an i32 counts them.
inline constexpr std::int64_t kMaxBatch = (std::int64_t{1} << 31) - 1;

}  // namespace graphrun
