// step_order.h: other orders of the steps of a graph, in which less may have to be held at one time.
// Contract: pure and deterministic; each order keeps what every step reads, states included, so that no bit changes;
// regions stay whole. A heuristic: whoever asks looks which order is better.
#pragma once

#include <vector>

#include "compiler/layouts.h"
#include "graph/ir/graph.h"

namespace graphrun::plan {

// All nodes of the graph: list schedules. First, steps that free more than they take as soon as they can run, all
// others as they came; second, always the one that takes least.
std::vector<std::vector<ir::NodeId>> other_orders(const ir::Graph& graph, const Layouts& layouts);

}  // namespace graphrun::plan
