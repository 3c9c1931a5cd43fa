// batch_dependence.h: detects values of a model's graph that depend on more than their own row.
// Contract: derived from the row analysis (compiler/graph_analysis.h), never from sizes.
#pragma once

#include <vector>

#include "compiler/graph_analysis.h"
#include "graph/ir/graph.h"
#include "graphrun/model.h"

namespace graphrun {

// Name of the first output that depends on more than its own row; empty if there is none.
std::string batch_dependent_output(const Model& model);

// Values without rows that are computed from rows and read by a value with rows: all information shared across rows.
// Throws Error (kind input) for a value computed from all rows that is not an aggregate.
std::vector<ir::NodeId> aggregates_of(const ir::Graph& graph, ir::NodeId wanted);

}  // namespace graphrun
