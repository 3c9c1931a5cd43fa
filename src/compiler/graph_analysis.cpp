#include "compiler/graph_analysis.h"

#include "graphrun/op.h"
#include "graphrun/op_traits.h"

namespace graphrun {
namespace {

Alias alias_of(const ir::Node& node, std::span<const TensorType> inputs) {
  if (node.def->view != nullptr && node.def->view(node.attrs, inputs)) return Alias::view;
  switch (traits_of(node.op).overlay) {
    case Overlay::none:
      return Alias::none;
    case Overlay::reuse:
      return Alias::may_reuse;
    case Overlay::state:
      return Alias::must_be;
  }
  return Alias::none;
}

}  // namespace

std::int64_t elements_of(const ir::Node& node) {
  return node.op == Op::record ? 1 : node.type.shape.elements();
}

GraphAnalysis analyze(const ir::Graph& graph) {
  GraphAnalysis result;
  result.consumers.resize(graph.size());
  result.aliases.resize(graph.size());
  result.roots.resize(graph.size());
  std::vector<TensorType> inputs;
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    const ir::Node& node = graph[id];
    inputs.clear();
    for (const ir::NodeId input : node.inputs) {
      inputs.push_back(graph[input].type);
      result.consumers[input].push_back(id);
    }
    result.aliases[id] = alias_of(node, inputs);
    result.roots[id] = result.is_view(id) ? result.roots[node.inputs[0]] : id;
  }
  return result;
}

}  // namespace graphrun
