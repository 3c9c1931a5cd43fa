// orders.h: other orders of the steps of a graph that may lower the peak of live bytes, also with steps that are
// repeated when their values are needed late, instead of staying live until then.
// Contract: pure and deterministic; each order preserves what every step reads, states included, and regions stay whole
// and are not repeated, so results are bitwise identical. Candidates for recomputation cost about as much as writing
// their result: elementwise steps, rows selected from data, random numbers (counter-based: the same bits), moved or
// broadcast elements, operations along a row; with `costly` products and sums, too. Never effects. Not here: choice
// (fit_memory.h).
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/arena.h"
#include "graph/ir/graph.h"

namespace graphrun::plan {

// List schedules of all nodes. The first runs steps that free more than they allocate as early as possible and keeps
// the order of the others. The second always runs the step that allocates least.
std::vector<std::vector<ir::NodeId>> other_orders(const ir::Graph& graph, const Layouts& layouts);

struct Recomputation {
  std::vector<ir::NodeId> nodes;  // in order: the value, its views, and those of its operands that are not live by then
  ir::NodeId before = 0;          // first step that reads the second computation
  std::uint64_t worth = 0;        // upper bound of the bytes saved, summed over the times with an excess
};

// Most promising first; `costly` includes products and sums. `excess`: bytes above the target at each time.
std::vector<Recomputation> recomputations(const ir::Graph& graph, const Layouts& layouts,
                                          const std::vector<std::uint64_t>& excess, bool costly);

// Order of a graph's nodes in which those of the recomputation are repeated (reordered() of rewrite.h).
std::vector<ir::NodeId> order_with(const Recomputation& what, ir::NodeId nodes);

}  // namespace graphrun::plan
