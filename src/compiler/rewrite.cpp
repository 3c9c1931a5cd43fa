#include "compiler/rewrite.h"

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
  std::vector<NodeId> to(graph.size(), ir::kNoNode);
  Rewritten result;
  for (const NodeId id : order) {
    to[id] = result.graph.size();
    ir::Node node = graph[id];
    for (NodeId& input : node.inputs) input = to[input];
    result.graph.nodes.push_back(std::move(node));
  }
  result.ids = IdMap(std::move(to));
  result.graph.phases = renumbered(graph.phases, result.ids);
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

std::vector<ir::Region> renumbered(std::vector<ir::Region> regions, const IdMap& ids) {
  for (ir::Region& region : regions) {
    const NodeId first = ir::first_of(region);
    const auto moved = [&, to = ids[first]](NodeId id) { return id == ir::kNoNode ? id : to + (id - first); };
    for (ir::RegionStage& stage : region.stages) {
      stage.first = moved(stage.first), stage.rows = moved(stage.rows), stage.last = moved(stage.last);
      for (ir::FusedNodes& fused : stage.fused)
        fused.product = moved(fused.product), fused.bias = moved(fused.bias), fused.epilogue = moved(fused.epilogue);
    }
    for (ir::NodeRange& chain : region.chains) chain = {moved(chain.first), moved(chain.last)};
    region.last = moved(region.last);
  }
  return regions;
}

}  // namespace graphrun
