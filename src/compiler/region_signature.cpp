#include "compiler/region_signature.h"

#include <algorithm>

#include "compiler/graph_analysis.h"
#include "graph/ops/op_def.h"

namespace graphrun {

RegionQuestion::Step RegionQuestion::step_of(ir::NodeId id, bool over_rows) const {
  const ir::Node& node = graph_[id];
  Step step;
  step.op = node.op;
  step.output = node.type;
  for (const ir::NodeId input : node.inputs) step.inputs.push_back(graph_[input].type);
  if (node.def->pack != nullptr) step.params = node.def->pack(node.attrs, step.inputs, node.type);
  step.partial = over_rows && phase_.row_count != ir::kNoNode;
  return step;
}

void RegionQuestion::add(ir::NodeId id, bool over_rows) {
  (over_rows ? rows_ : once_).push_back(step_of(id, over_rows));
}

void RegionQuestion::add(const ir::FusedNodes& fused) {
  products_.push_back(step_of(fused.product, true));
  fused_.push_back(fused);
}

void RegionQuestion::add_chain(std::span<const ir::NodeId> steps) {
  for (const ir::NodeId id : steps) rows_.push_back(step_of(id, graph_[id].type.rows > 0));
  chains_.push_back(elements_of(graph_[steps.back()]));
}

StepSignature RegionQuestion::signature(const Step& step) {
  return {step.op, step.params, step.inputs, step.output, step.partial};
}

RegionPlan RegionQuestion::ask(const PlanRegion& plan, const RegionSize& size) const {
  std::vector<StepSignature> rows, once;
  for (const Step& step : rows_) rows.push_back(signature(step));
  for (const Step& step : once_) once.push_back(signature(step));
  std::vector<FusedSignature> fused;
  for (std::size_t i = 0; i < fused_.size(); ++i) {
    const ir::FusedNodes& nodes = fused_[i];
    FusedSignature& one = fused.emplace_back(FusedSignature{signature(products_[i]), nodes.bias != ir::kNoNode});
    one.in_place = nodes.in_place;
    if (nodes.epilogue == ir::kNoNode) continue;
    const std::vector<ir::NodeId>& inputs = graph_[nodes.epilogue].inputs;
    const ir::NodeId value = one.bias ? nodes.bias : nodes.product;
    one.epilogue = graph_[nodes.epilogue].op;
    one.input = static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), value) - inputs.begin());
  }
  const bool reduces = std::any_of(rows_.begin(), rows_.end(), [](const Step& step) { return step.output.rows == 0; });
  RegionSignature region;
  region.form = !chains_.empty() ? RegionForm::elements : reduces ? RegionForm::reductions : RegionForm::rows;
  region.chains = chains_;
  region.rows = rows;
  region.once = once;
  region.capacity = phase_.capacity;
  region.fused = fused;
  region.size = size;
  return plan(region);
}

}  // namespace graphrun
