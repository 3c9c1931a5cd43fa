// step_order.h: alternative orders of the steps of a graph that may lower the peak of live bytes. Contract: pure and
// deterministic; each order preserves what every step reads, states included, so results are bitwise identical; regions
// stay whole. A heuristic: the caller compares the orders.
#pragma once

#include <vector>

#include "compiler/arena.h"
#include "graph/ir/graph.h"

namespace graphrun::plan {

// List schedules of all nodes. The first runs steps that free more than they allocate as early as possible and keeps
// the order of the others. The second always runs the step that allocates least.
std::vector<std::vector<ir::NodeId>> other_orders(const ir::Graph& graph, const Layouts& layouts);

}  // namespace graphrun::plan
