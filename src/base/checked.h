// checked.h: sums and products of extents that cannot wrap.
// Contract: what does not fit 64 bits becomes the end of them, which is above every limit (graphrun/limits.h), so
// that one look at the result finds it. Leaves to others: refusing what is above a limit (ir::Builder::add).
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

// How many pieces of `size` hold `count`, which is not negative; the last may be smaller.
constexpr std::int64_t divide_up(std::int64_t count, std::int64_t size) {
  return count / size + (count % size != 0);
}

// The next multiple of `size`, from `bytes` on.
constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t size) {
  return (bytes + size - 1) / size * size;
}

}  // namespace graphrun
