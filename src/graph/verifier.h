// verifier.h: the named invariants of a graph, checked after every pass.
// Contract: throws std::logic_error "verifier: <rule>: <node>: ..." for the first broken rule, which is a bug in
// graphrun, not a user error. Rules: order (inputs precede their reader), phase (a node reads only its own phase and
// shared states), arity, type (equals the inferred type), name (unique), effect (assign writes a state, each state at
// most once per phase), rows (dimension 0 of a row value is its multiplicity times the capacity, or times the symbolic
// batch), count (row_count is an i32 scalar).
#pragma once

#include "graph/ir/graph.h"

namespace graphrun {

void verify(const ir::Graph& graph);

}  // namespace graphrun
