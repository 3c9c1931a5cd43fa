// passes.h: the passes that rewrite a graph into a smaller one that gives the same bits.
// Contract: a node that is kept, polled, a state or an effect still exists, under its name.
#pragma once

#include "compiler/rewrite.h"

namespace graphrun {

Rewritten simplify(const ir::Graph& graph);     // equal nodes once; broadcasts that the reader does itself; identities
Rewritten remove_dead(const ir::Graph& graph);  // nodes that no effect, kept or polled node needs

}  // namespace graphrun
