// greedy.h: packings by rule: each block in turn goes to the lowest gap that it fits in, in several orders.
// Contract: deterministic; valid whatever the budget, because the first order is always done. O(n^2) an order at worst.
#pragma once

#include <span>

#include "compiler/packing/block.h"

namespace graphrun::plan {

// The best packing of several orders, then of orders that bring what sticks out forward, until one reaches `goal`.
Solution pack_greedily(std::span<const Block> blocks, Bytes goal, Meter& meter);

}  // namespace graphrun::plan
