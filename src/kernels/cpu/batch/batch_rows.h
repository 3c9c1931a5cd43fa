// batch_rows.h: data set rows of a batch, for the kernels over whole batches and those over tiles.
// Contract: pure functions. Leaves to others: the rows themselves (movement.cpp, tile_moves.cpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "graphrun/params.h"

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

}  // namespace graphrun::cpu
