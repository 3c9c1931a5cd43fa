// checked.h: sums and products of extents with saturation.
// Contract: a result beyond 64 bits saturates, which exceeds every limit (graphrun/types.h), so one check of the
// result suffices. Not here: rejecting results above a limit (ir::Builder::add).
#pragma once

#include <cstdint>
#include <limits>

namespace graphrun {

constexpr std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

constexpr std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) != (b < 0) ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

// Number of blocks of `size` that hold `count` (not negative); the last may be partial.
constexpr std::int64_t divide_up(std::int64_t count, std::int64_t size) {
  return count / size + (count % size != 0);
}

// Rounds `bytes` up to a multiple of `size`.
constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t size) {
  return (bytes + size - 1) / size * size;
}

}  // namespace graphrun
