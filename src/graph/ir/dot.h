// dot.h: a graph as Graphviz text.
// Contract: stable; scalar constants stand inside the nodes that read them. Leaves to others: layout (`dot -Tsvg`).
#pragma once

#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace graphrun::ir {

// A node as one line: "h = tanh(add_1) : f32(batch, 6)"; scalar constants are written as numbers.
std::string node_text(const Graph& graph, NodeId id);
// The nodes marked in `shown`; each phase in a box of its own when there are several.
std::string to_dot(const Graph& graph, const std::string& name, const std::vector<bool>& shown);

bool is_number(const Node& node);  // a scalar constant

}  // namespace graphrun::ir
