#include "executors/cuda_planner/step_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executors/cuda_planner/row_text.h"
#include "executors/cuda_planner/tile_costs.h"
#include "graphrun/op.h"

namespace graphrun::cuda {
namespace {

// Limit on values shared by all rows. They are in each block's shared memory, next to the cross-block reduction.
constexpr std::uint64_t kMaxShared = 96 * 1024;
constexpr std::int64_t kMaxRows = std::int64_t{1} << 31;

// Scratch of AllReduce in kernels/cuda/tile/exchange.h: messages of three floats for each cluster, for two epochs.
std::uint64_t exchange_bytes(const StepTiling& tiling, std::int64_t sums) {
  const std::int64_t slice = divide_up(divide_up(std::max<std::int64_t>(sums, 1), tiling.cluster), 4) * 4;
  const std::int64_t packets = divide_up(divide_up(slice, 3), 8) * 8;
  return 2 * static_cast<std::uint64_t>(tiling.blocks()) * static_cast<std::uint64_t>(packets) * 16;
}

}  // namespace

std::int64_t features(const TensorType& type) {
  return type.rows > 0 ? feature_count(type) : type.shape.elements();
}
bool is_function(const StepSignature& step) {
  return is_elementwise(step.op) && step.inputs.size() == 1;
}

TextCall call_of(const StepSignature& step) {
  TextCall call{step.op, &step.params, {}, step.output};
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    TextOperand& operand = call.inputs.emplace_back(TextOperand{step.inputs[i], "x"});
    operand.number = step.inputs[i].rows == 0 && step.inputs[i].shape.elements() == 1;
    operand.view = i < step.views.size() ? step.views[i] : dense(step.inputs[i].shape);
  }
  return call;
}

// Counts a value for each row step that reads it, step that computes it, and other step with a smaller output.
std::uint64_t shared_bytes(const RegionSignature& region) {
  std::uint64_t bytes = 0;
  const auto add = [&](const TensorType& type) {
    if (type.rows == 0 && type.shape.elements() > 1) bytes += type.bytes();
  };
  for (const StepSignature& step : region.rows) {
    for (const TensorType& input : step.inputs)
      if (&input != step.inputs.data() || step.op != Op::minibatch) add(input);
    if (step.output.rows == 0) add(step.output);
  }
  for (const StepSignature& step : region.once) {
    if (step.op == Op::record) continue;
    for (const TensorType& input : step.inputs)
      if (input.shape.elements() > step.output.shape.elements()) add(input);
    add(step.output);
  }
  return bytes;
}

// Clusters send messages to each other and poll for them.
std::int64_t exchange_cycles(const StepTiling& tiling, std::int64_t sums) {
  if (sums == 0) return 100;
  if (tiling.clusters > 1) return 2280 + 45 * std::int64_t{tiling.clusters};
  return tiling.cluster > 1 ? 1120 + 15 * std::int64_t{tiling.cluster} : 375;
}

// Each stage has scratch of its own. The signature does not say which sums share a stage, so each value gets as much as
// if it were alone. The generated kernel asserts that this is enough.
std::uint64_t scratch_bytes(const RegionSignature& region, const StepTiling& tiling) {
  if (tiling.tile == RowTile::block) return block_scratch_bytes(region, tiling);
  if (tiling.tile == RowTile::split) return split_scratch_bytes(region, tiling);
  if (tiling.clusters <= 1) return 0;
  std::uint64_t bytes = 0;
  for (const StepSignature& step : region.rows)
    if (step.output.rows == 0) bytes += exchange_bytes(tiling, divide_up(step.output.shape.elements(), 4) * 4);
  return bytes > 0 ? bytes : exchange_bytes(tiling, 1);
}

// Rows of a value that a step computes once would come from the arena, which a kernel writes only at its end.
std::string batch_fault(const RegionSignature& region) {
  for (std::size_t i = 0; i < std::min(region.rows.size(), region.makers.size()); ++i) {
    const StepSignature& step = region.rows[i];
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      const bool rows = step.inputs[k].rows > 0 || (step.op == Op::minibatch && k == 0);
      if (rows && region.makers[i][k] != kNoStep && region.makers[i][k] >= region.rows.size())
        return fmt::format("'{}' is not part of a step kernel: its rows are of data that the same region computes",
                           name_of(step.op));
    }
  }
  return {};
}

std::string register_fault(const RegionSignature& region) {
  for (const StepSignature& step : region.rows) {
    for (std::size_t i = 0; i <= step.inputs.size(); ++i) {
      const TensorType& type = i < step.inputs.size() ? step.inputs[i] : step.output;
      if (type.rows > 0 && features(type) > kMaxFeatures)
        return fmt::format("'{}' has {} numbers a row, rows in registers at most {}", name_of(step.op), features(type),
                           kMaxFeatures);
    }
  }
  for (const StepSignature& step : region.once) {
    std::string reason;
    if (element_text(call_of(step), reason).empty()) return reason;
  }
  if (const std::uint64_t bytes = shared_bytes(region); bytes > kMaxShared)
    return fmt::format("values shared by all rows take {} bytes, the shared memory of a block has {}", bytes,
                       kMaxShared);
  return {};
}

std::uint32_t stage_of(const RegionSignature& region, std::size_t row_step) {
  return row_step < region.stages.size() ? region.stages[row_step] : 0;
}
std::uint32_t stage_count(const RegionSignature& region) {
  return region.stages.empty() ? 1 : std::ranges::max(region.stages) + 1;
}

std::vector<StepCost> step_costs(const RegionSignature& region, const Target& target) {
  std::vector<StepCost> costs;
  if (register_fault(region).empty()) {
    costs = thread_costs(region, target).costs;
    for (const StepCost& cost : warp_costs(region, target).costs) costs.push_back(cost);
    for (StepCost& cost : costs) cost.tiling.scratch_bytes = scratch_bytes(region, cost.tiling);
  }
  for (const StepCost& cost : block_costs(region, target).costs) costs.push_back(cost);
  for (const StepCost& cost : split_costs(region, target).costs) costs.push_back(cost);
  std::ranges::stable_sort(costs, {}, [](const StepCost& cost) { return std::pair(cost.is_long, cost.cycles); });
  return costs;
}

RegionPlan plan_rows(const RegionSignature& region, const Target& target) {
  if (!region.fused.empty()) return RegionPlan::no("a step kernel needs no fused steps");
  if (region.capacity > kMaxRows)
    return RegionPlan::no(fmt::format("a batch of {} rows, a step kernel takes up to {}", region.capacity, kMaxRows));
  if (std::string fault = batch_fault(region); !fault.empty()) return RegionPlan::no(std::move(fault));
  const std::vector<StepCost> costs = step_costs(region, target);
  if (costs.empty()) {
    std::string registers = register_fault(region);
    if (registers.empty())
      registers = fmt::format("{}; {}", thread_costs(region, target).fault, warp_costs(region, target).fault);
    std::string reasons = registers;
    for (const std::string& other : {block_costs(region, target).fault, split_costs(region, target).fault})
      if (reasons.find(other) == std::string::npos) reasons += "; " + other;
    return RegionPlan::no(std::move(reasons));
  }
  RegionPlan plan = RegionPlan::with(costs.front().tiling);
  for (const StepCost& cost : costs) plan.choices.push_back({cost.tiling, cost.cycles});
  return plan;
}

}  // namespace graphrun::cuda
