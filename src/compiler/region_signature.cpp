#include "compiler/region_signature.h"

#include <algorithm>
#include <map>

#include "graph/ops/op_def.h"

namespace graphrun {

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

}  // namespace graphrun
