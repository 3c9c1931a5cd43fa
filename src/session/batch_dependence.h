// batch_dependence.h: where a value of a model's graph depends on other rows than its own.
// Contract: follows from the row analysis (compiler/row_analysis.h), never from sizes.
#pragma once

#include <vector>

#include "compiler/row_analysis.h"
#include "graph/ir/graph.h"
#include "graphrun/model.h"

namespace graphrun {

// The name of the first output that depends on the other rows of its batch; empty: none does.
std::string batch_dependent_output(const Model& model);

// The values without rows that come from rows and that a value with rows reads: what a row gets from the others.
// Throws Error (kind input) for a value that is made from all rows and is no aggregate of them.
std::vector<ir::NodeId> aggregates_of(const ir::Graph& graph, ir::NodeId wanted);

}  // namespace graphrun
