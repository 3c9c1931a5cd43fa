#include "compiler/region_signature.h"

#include <algorithm>
#include <map>

#include "graph/ops/op_def.h"

namespace graphrun {

void RegionQuestion::add(ir::NodeId id, std::optional<std::uint32_t> stage) {
  (stage ? rows_ : once_).push_back(signature_of(graph_, id));
  (stage ? row_ids_ : once_ids_).push_back(id);
  if (stage) stages_.push_back(*stage);
}

void RegionQuestion::add(const ir::FusedNodes& fused) {
  products_.push_back(signature_of(graph_, fused.product));
  fused_.push_back(fused);
}

void RegionQuestion::add_chain(std::span<const ir::NodeId> steps) {
  for (const ir::NodeId id : steps) rows_.emplace_back(signature_of(graph_, id)).in_chain = true;
  chains_.push_back(elements_of(graph_[steps.back()]));
}

RegionPlan RegionQuestion::ask(const PlanRegion& plan, const RegionSize& size) const {
  std::vector<StepSignature> rows, once;
  for (const NodeSignature& step : rows_) rows.push_back(step.get());
  for (const NodeSignature& step : once_) once.push_back(step.get());
  std::vector<FusedSignature> fused;
  for (std::size_t i = 0; i < fused_.size(); ++i) {
    const ir::FusedNodes& nodes = fused_[i];
    FusedSignature& one = fused.emplace_back(FusedSignature{products_[i].get(), nodes.bias != ir::kNoNode});
    one.in_place = nodes.in_place;
    if (nodes.epilogue == ir::kNoNode) continue;
    const std::vector<ir::NodeId>& inputs = graph_[nodes.epilogue].inputs;
    const ir::NodeId value = one.bias ? nodes.bias : nodes.product;
    one.epilogue = graph_[nodes.epilogue].op;
    one.input = static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), value) - inputs.begin());
  }
  std::vector<ir::NodeId> ids = row_ids_;
  ids.insert(ids.end(), once_ids_.begin(), once_ids_.end());
  std::map<ir::NodeId, std::uint32_t> places;
  for (const ir::NodeId id : ids) places.emplace(id, static_cast<std::uint32_t>(places.size()));
  std::vector<std::vector<std::uint32_t>> makers;
  for (const ir::NodeId id : ids) {
    std::vector<std::uint32_t>& of = makers.emplace_back();
    for (const ir::NodeId input : graph_[id].inputs) {
      const auto found = places.find(root_of(graph_, input));
      of.push_back(found == places.end() ? kNoStep : found->second);
    }
  }
  const bool reduces =
      std::any_of(rows.begin(), rows.end(), [](const StepSignature& step) { return step.output.rows == 0; });
  const RegionForm over_rows = reduces ? RegionForm::reductions : RegionForm::rows;
  return plan({chains_.empty() ? over_rows : RegionForm::elements, rows, once, phase_.capacity, fused, chains_, size,
               makers, stages_});
}

}  // namespace graphrun
