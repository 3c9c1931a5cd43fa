#include "compiler/rewrite.h"

#include <algorithm>
#include <numeric>

namespace graphrun {

using ir::NodeId;

IdMap IdMap::identity(NodeId nodes) {
  std::vector<NodeId> to(nodes);
  std::iota(to.begin(), to.end(), NodeId{0});
  return IdMap(std::move(to));
}

IdMap IdMap::then(const IdMap& next) const {
  std::vector<NodeId> to;
  to.reserve(to_.size());
  for (const NodeId id : to_) to.push_back(next[id]);
  return IdMap(std::move(to));
}

Rewritten reordered(const ir::Graph& graph, std::span<const NodeId> order) {
  std::vector<NodeId> first(graph.size(), ir::kNoNode), last(graph.size(), ir::kNoNode);
  Rewritten result;
  for (const NodeId id : order) {
    ir::Node node = graph[id];
    for (NodeId& input : node.inputs) input = last[input];
    last[id] = result.graph.size();
    if (first[id] == ir::kNoNode)
      first[id] = last[id];
    else
      node.keep = node.poll = false;
    result.graph.nodes.push_back(std::move(node));
  }
  result.ids = IdMap(std::move(first));
  result.graph.phases = renumbered(graph.phases, result.ids);
  for (const ir::Region& region : graph.regions)
    result.graph.regions.push_back(moved(region, result.ids[region.first()]));
  std::ranges::sort(result.graph.regions, {}, &ir::Region::first);
  return result;
}

std::vector<ir::Phase> renumbered(std::vector<ir::Phase> phases, const IdMap& ids) {
  for (ir::Phase& phase : phases) {
    phase.row_count = ids[phase.row_count];
    phase.epoch_steps = ids[phase.epoch_steps];
    for (NodeId& ring : phase.rings) ring = ids[ring];
  }
  return phases;
}

ir::Region moved(ir::Region region, NodeId first) {
  const auto move = [by = first - region.first()](NodeId& id) { id = id == ir::kNoNode ? id : id + by; };
  for (ir::RegionStage& stage : region.stages) {
    move(stage.first), move(stage.rows), move(stage.last);
    for (ir::FusedNodes& fused : stage.fused) move(fused.product), move(fused.bias), move(fused.epilogue);
  }
  for (ElementChain& chain : region.chains) move(chain.first), move(chain.last);
  move(region.last);
  return region;
}

}  // namespace graphrun
