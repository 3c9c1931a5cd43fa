#include "compiler/graph_analysis.h"

#include <fmt/format.h>

#include "graph/ops/infer.h"
#include "graphrun/op.h"
#include "graphrun/op_traits.h"

namespace graphrun {
namespace {

Overlay overlay_of(const ir::Node& node, std::span<const TensorType> inputs) {
  if (node.def->view != nullptr && node.def->view(node.attrs, inputs)) return Overlay::view;
  return traits_of(node.op).overlay;
}

}  // namespace

std::int64_t elements_of(const ir::Node& node) {
  return node.op == Op::record ? 1 : node.type.shape.elements();
}

GraphAnalysis analyze(const ir::Graph& graph) {
  GraphAnalysis result;
  result.consumers.resize(graph.size());
  result.overlays.resize(graph.size());
  result.roots.resize(graph.size());
  std::vector<TensorType> inputs;
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    const ir::Node& node = graph[id];
    inputs.clear();
    for (const ir::NodeId input : node.inputs) {
      inputs.push_back(graph[input].type);
      result.consumers[input].push_back(id);
    }
    result.overlays[id] = overlay_of(node, inputs);
    result.roots[id] = result.is_view(id) ? result.roots[node.inputs[0]] : id;
  }
  result.places.resize(graph.size());
  for (std::uint32_t r = 0; r < graph.regions.size(); ++r) {
    const ir::Region& region = graph.regions[r];
    for (ir::NodeId id = region.first(); id < region.last; ++id) result.places[id].region = r;
    for (const ir::RegionStage& stage : region.stages)
      for (ir::NodeId id = stage.rows; id < stage.last; ++id) result.places[id].stage = stage.rows;
    for (const ElementChain& chain : region.chains)
      for (ir::NodeId id = chain.first; id < chain.last; ++id) result.places[id].chain = chain.first;
  }
  return result;
}

ir::NodeId root_of(const ir::Graph& graph, ir::NodeId id) {
  std::vector<TensorType> inputs;
  for (;; id = graph[id].inputs[0]) {
    if (graph[id].def->view == nullptr) return id;
    inputs.clear();
    for (const ir::NodeId input : graph[id].inputs) inputs.push_back(graph[input].type);
    if (overlay_of(graph[id], inputs) != Overlay::view) return id;
  }
}

std::vector<ir::NodeId> nodes_of(const ir::Graph& graph, std::uint32_t phase) {
  std::vector<ir::NodeId> nodes;
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    if (graph[id].phase == phase) nodes.push_back(id);
  }
  return nodes;
}

OwnedSignature signature_of(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph[id];
  OwnedSignature result{node.op, infer::params_of(graph, node), {}, node.type};
  bool rows = node.type.rows > 0;
  for (const ir::NodeId input : node.inputs) {
    result.inputs.push_back(graph[input].type);
    rows = rows || graph[input].type.rows > 0;
  }
  result.partial_rows = rows && node.phase != ir::kShared && graph.phases[node.phase].row_count != ir::kNoNode;
  return result;
}

void point_to(const ir::Node& node, Diagnostic& diagnostic) {
  diagnostic.message = fmt::format("'{}' ({}): {}", node.name, name_of(node.op), diagnostic.message);
  diagnostic.line = node.source.line;
  diagnostic.column = node.source.column;
  diagnostic.pointer = node.source.pointer;
}

}  // namespace graphrun
