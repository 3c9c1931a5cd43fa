// elements.h: what single elements and rows become, for the kernels over whole batches and those over tiles.
// Contract: pure functions. Leaves to others: loops (movement.cpp, tile_moves.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "graphrun/params/minibatch.h"
#include "graphrun/types.h"

namespace graphrun::cpu {

// First row and number of rows of the batch that the counter selects.
struct Batch {
  std::int64_t first, count;
};
inline Batch batch_of(const MinibatchParams& p, std::uint64_t step) {
  if (p.total == 0) return {0, 0};
  const std::int64_t first = static_cast<std::int64_t>(step % static_cast<std::uint64_t>(p.batches())) * p.capacity;
  return {first, std::min(p.capacity, p.total - first)};
}

// Out of range clamps, NaN is 0: the same on every machine. The tag keeps booleans apart from bytes.
template <DType to, class Out, class In>
Out convert(In x) {
  if constexpr (to == DType::boolean) {
    return x != 0;
  } else if constexpr (std::is_floating_point_v<Out>) {
    return static_cast<Out>(x);
  } else {
    const double v = static_cast<double>(x);
    if (!(v > static_cast<double>(std::numeric_limits<Out>::min()))) {
      return std::isnan(v) ? Out{0} : std::numeric_limits<Out>::min();
    }
    if (v >= static_cast<double>(std::numeric_limits<Out>::max())) return std::numeric_limits<Out>::max();
    return static_cast<Out>(x);
  }
}
}  // namespace graphrun::cpu
