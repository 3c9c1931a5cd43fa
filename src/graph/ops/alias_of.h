// alias_of.h: the alias of a node, from its op's definition and traits.
// Contract: a pure function of the graph.
// Leaves to others: what follows from it: storage (compiler/storage.h), regions (compiler/regions.h).
#pragma once

#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/op_def.h"

namespace graphrun {

inline Alias alias_of(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph[id];
  if (node.def->view != nullptr) {
    std::vector<TensorType> inputs;
    for (const ir::NodeId input : node.inputs) inputs.push_back(graph[input].type);
    if (node.def->view(node.attrs, inputs)) return {Alias::Kind::view, 0};
  }
  switch (traits_of(node.op).overlay) {
    case Overlay::none:
      return {};
    case Overlay::reuse:
      return {Alias::Kind::may_reuse, 0};
    case Overlay::state:
      return {Alias::Kind::must_be, 0};
  }
  return {};
}

}  // namespace graphrun
