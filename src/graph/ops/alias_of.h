// alias_of.h: the alias of a node, from its op's declaration.
// Contract: a pure function of the graph; an op without a declaration has none.
// Leaves to others: what follows from it: storage (compiler/storage.h), regions (compiler/regions.h).
#pragma once

#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/op_def.h"

namespace graphrun {

inline Alias alias_of(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph[id];
  if (node.def->alias == nullptr) return {};
  std::vector<TensorType> inputs;
  for (const ir::NodeId input : node.inputs) inputs.push_back(graph[input].type);
  return node.def->alias(node.attrs, inputs, node.type);
}

}  // namespace graphrun
