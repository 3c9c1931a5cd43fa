// passes.h: passes that rewrite a graph into a smaller one with bitwise identical results.
// Contract: a node that is kept, polled, a state or an effect still exists, under its name.
#pragma once

#include "compiler/rewrite.h"

namespace graphrun {

Rewritten simplify(const ir::Graph& graph);     // merges equal nodes; drops identities and implicit broadcasts
Rewritten remove_dead(const ir::Graph& graph);  // drops nodes that no effect, kept or polled node needs

}  // namespace graphrun
