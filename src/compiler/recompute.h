// recompute.h: values that are computed a second time where they are needed late, instead of being held until then.
// Contract: pure and deterministic. Nothing in a region is, so regions run as before, and no state that is read again
// has been written in between: no bit changes. What costs about as much as writing it are elementwise steps, rows
// picked from data, draws (they are counter-based: the same bits), moved and broadcast elements, and operations along a
// row; `dear` ones are products and sums too. Never effects. Leaves to others: which are worth it (fit_memory.h).
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/layouts.h"
#include "compiler/rewrite.h"
#include "graph/ir/graph.h"

namespace graphrun::plan {

struct Recomputation {
  std::vector<ir::NodeId> nodes;  // in order: the value, what shows it, and what it needs that is not held any more
  ir::NodeId before = 0;          // the first step that then reads the second computation
  std::uint64_t worth = 0;        // at most so many bytes, summed over the steps where there are too many
};

// The most promising first; with `dear` products and sums among them. `excess`: bytes that are too many at each time.
std::vector<Recomputation> recomputations(const ir::Graph& graph, const Layouts& layouts,
                                          const std::vector<std::uint64_t>& excess, bool dear);

struct Recomputed {
  ir::Graph graph;
  IdMap ids;                     // to what was there
  std::vector<ir::NodeId> from;  // by node of the graph: which node of the old one it is, for the first or second time
};
Recomputed recompute(const ir::Graph& graph, const Recomputation& what);

}  // namespace graphrun::plan
