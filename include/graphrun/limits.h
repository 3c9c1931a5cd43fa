// limits.h: what is too much, wherever it comes from: stated once, so that nothing behind it has to ask whether a sum
// or a product of extents wraps. model-format.md lists them.
// Contract: what reads a file or a Program refuses more, by name. Leaves to others: limits of memory (fit_batch.h).
#pragma once

#include <cstdint>

namespace graphrun {

// Elements of a tensor; an extent of 0 counts as 1 here. So no stride, offset or number of bytes of a tensor overflows.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

// Samples of a batch: an i32 counts them.
inline constexpr std::int64_t kMaxBatch = (std::int64_t{1} << 31) - 1;

}  // namespace graphrun
