// pipeline.h: the passes, in order. A pass only improves: the same numbers come out with none of them.
// Contract: run_passes gives a new graph in which every node that is kept, polled or an effect still exists, under its
// name; the verifier runs after every pass.
#pragma once

#include "graph/ir/graph.h"

namespace graphrun {

ir::Graph run_passes(const ir::Graph& graph);

// The passes by themselves, for tests.
ir::Graph simplify(const ir::Graph& graph);     // equal nodes once; broadcasts that the reader does itself; identities
ir::Graph remove_dead(const ir::Graph& graph);  // nodes that no effect, kept or polled node needs

}  // namespace graphrun
