#include "compiler/graph_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "graph/ops/infer.h"
#include "graphrun/op.h"
#include "graphrun/op_traits.h"

namespace graphrun {
namespace {

Overlay overlay_of(const ir::Graph& graph, const ir::Node& node) {
  const bool is_view = node.def->view != nullptr && node.def->view(node.attrs, input_types(graph, node));
  return is_view ? Overlay::view : traits_of(node.op).overlay;
}

}  // namespace

std::string_view name_of(RowKind kind) {
  constexpr std::string_view kNames[] = {"Row", "Shared", "Reduced", "Opaque"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<RowKind> row_kinds(const ir::Graph& graph) {
  std::vector<RowKind> kinds;
  kinds.reserve(graph.size());
  for (const ir::Node& node : graph.nodes) {
    const RowRule rule = node.def->rows;
    if (node.type.rows > 0) {
      kinds.push_back(RowKind::row);
    } else if (!reads_rows(graph, node)) {
      kinds.push_back(RowKind::shared);
    } else {
      const bool reduces = rule == RowRule::reduction || rule == RowRule::contraction || rule == RowRule::scatter;
      kinds.push_back(reduces ? RowKind::reduced : RowKind::opaque);
    }
  }
  return kinds;
}

std::int64_t elements_of(const ir::Node& node) {
  return node.op == Op::record ? 1 : node.type.shape.elements();
}

GraphAnalysis analyze(const ir::Graph& graph) {
  GraphAnalysis result;
  result.consumers.resize(graph.size());
  result.overlays.resize(graph.size());
  result.roots.resize(graph.size());
  result.writers.resize(graph.size());
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    const ir::Node& node = graph[id];
    for (const ir::NodeId input : node.inputs) result.consumers[input].push_back(id);
    result.overlays[id] = overlay_of(graph, node);
    result.roots[id] = result.is_view(id) ? result.roots[node.inputs[0]] : id;
    if (result.overlays[id] == Overlay::state) result.writers[result.roots[node.inputs[0]]].push_back(id);
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

std::set<ir::NodeId> leaving(const ir::Graph& graph, const GraphAnalysis& analysis, std::span<const ir::NodeId> nodes) {
  const std::set<ir::NodeId> inside(nodes.begin(), nodes.end());
  std::set<ir::NodeId> leaves;
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const bool is_read = std::ranges::any_of(analysis.consumers[nodes[i]], [&](ir::NodeId reader) {
      return !inside.contains(reader) || (analysis.is_view(reader) && leaves.contains(reader));
    });
    if (is_read || graph[nodes[i]].keep || graph[nodes[i]].poll) leaves.insert(nodes[i]);
  }
  return leaves;
}

std::vector<ir::NodeId> nodes_of(const ir::Graph& graph, std::uint32_t phase) {
  std::vector<ir::NodeId> nodes;
  for (ir::NodeId id = 0; id < graph.size(); ++id) {
    if (graph[id].phase == phase) nodes.push_back(id);
  }
  return nodes;
}

bool reads_rows(const ir::Graph& graph, const ir::Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::NodeId id) { return graph[id].type.rows > 0; });
}

StepSignature signature_of(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph[id];
  const bool rows = node.type.rows > 0 || reads_rows(graph, node);
  const bool partial = rows && node.phase != ir::kShared && graph.phases[node.phase].row_count != ir::kNoNode;
  return {node.op, infer::params_of(graph, node), input_types(graph, node), node.type, partial};
}

void RegionQuestion::add(ir::NodeId id, std::optional<std::uint32_t> stage) {
  (stage ? region_.rows : region_.once).push_back(signature_of(graph_, id));
  (stage ? row_ids_ : once_ids_).push_back(id);
  if (stage) region_.stages.push_back(*stage);
}

void RegionQuestion::add(const ir::FusedNodes& nodes) {
  FusedSignature& fused = region_.fused.emplace_back();
  fused.product = signature_of(graph_, nodes.product);
  fused.bias = nodes.bias != ir::kNoNode;
  fused.in_place = nodes.in_place;
  if (nodes.epilogue == ir::kNoNode) return;
  const std::vector<ir::NodeId>& inputs = graph_[nodes.epilogue].inputs;
  const ir::NodeId value = fused.bias ? nodes.bias : nodes.product;
  fused.epilogue = graph_[nodes.epilogue].op;
  fused.input = static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), value) - inputs.begin());
}

void RegionQuestion::add_chain(std::span<const ir::NodeId> steps) {
  for (const ir::NodeId id : steps) region_.rows.emplace_back(signature_of(graph_, id)).in_chain = true;
  region_.chains.push_back(elements_of(graph_[steps.back()]));
}

RegionPlan RegionQuestion::ask(const PlanRegion& plan, const RegionSize& size) {
  std::vector<ir::NodeId> ids = row_ids_;
  ids.insert(ids.end(), once_ids_.begin(), once_ids_.end());
  std::map<ir::NodeId, std::uint32_t> places;
  for (const ir::NodeId id : ids) places.emplace(id, static_cast<std::uint32_t>(places.size()));
  for (const ir::NodeId id : ids) {
    std::vector<std::uint32_t>& makers = region_.makers.emplace_back();
    for (const ir::NodeId input : graph_[id].inputs) {
      const auto found = places.find(analysis_.roots[input]);
      makers.push_back(found == places.end() ? kNoStep : found->second);
    }
  }
  region_.size = size;
  return plan(region_);
}

void point_to(const ir::Node& node, Diagnostic& diagnostic) {
  diagnostic.message = fmt::format("'{}' ({}): {}", node.name, name_of(node.op), diagnostic.message);
  diagnostic.line = node.source.line;
  diagnostic.column = node.source.column;
  diagnostic.pointer = node.source.pointer;
}

}  // namespace graphrun
