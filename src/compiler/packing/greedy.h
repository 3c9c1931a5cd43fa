// greedy.h: greedy packings: each block in turn goes to the lowest gap that it fits in, in several orders.
// Contract: deterministic; valid for any budget, because the first order always completes. O(n^2) per order at worst.
#pragma once

#include <span>

#include "compiler/packing/block.h"

namespace graphrun::plan {

// Returns the best packing of several orders, then of orders that move blocks above `goal` forward; stops at `goal`.
Solution pack_greedily(std::span<const Block> blocks, Bytes goal, Meter& meter);

}  // namespace graphrun::plan
