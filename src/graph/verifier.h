// verifier.h: the rules every graph keeps, each with a name; run after every pass.
// Contract: throws std::logic_error "verifier: <rule>: <node>: ..." for the first broken rule (a bug of ours, not of
// the user). Rules: order (inputs come before their reader), phase (a node reads only its own phase and shared states),
// arity, type (what inference says again), name (unique), effect (assign writes a state, each state at most once in a
// phase), rows (dimension 0 of a row value is its multiplicity times the capacity, or times
// the batch while that is a symbol), count (row_count is an i32 scalar).
#pragma once

#include "graph/ir/graph.h"

namespace graphrun {

void verify(const ir::Graph& graph);

}  // namespace graphrun
