// dot.h: a graph as Graphviz text.
// Contract: deterministic; scalar constants are printed inside the nodes that read them. `dot -Tsvg` does the layout.
#pragma once

#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace graphrun::ir {

// A node as one line: "h = tanh(add_1) : f32(batch, 6)"; scalar constants are written as numbers.
std::string node_text(const Graph& graph, NodeId id);
// Prints the nodes marked in `shown`; each phase is a cluster if there are several.
std::string to_dot(const Graph& graph, const std::string& name, const std::vector<bool>& shown);

bool is_number(const Node& node);  // a scalar constant

}  // namespace graphrun::ir
