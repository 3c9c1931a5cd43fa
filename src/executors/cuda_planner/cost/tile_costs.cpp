#include "executors/cuda_planner/cost/tile_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executors/cuda_planner/plan/block_levels.h"
#include "executors/cuda_planner/plan/split_plan.h"
#include "executors/cuda_planner/print/row_text.h"
#include "executors/cuda_planner/tiles/warp.h"
#include "graphrun/op.h"
#include "kernels/cuda/tile/shapes.h"

namespace graphrun::cuda {
namespace {

// Limit on values shared by all rows. They are in each block's shared memory, next to the cross-block reduction.
constexpr std::uint64_t kMaxShared = 96 * 1024;
constexpr std::int64_t kMaxRows = std::int64_t{1} << 31;

// Upper bound on the scratch of an AllReduce, whichever other sums it has.
std::uint64_t exchange_bytes(const StepTiling& tiling, std::int64_t sums) {
  const std::int64_t slice = tile::slice_of(std::max<std::int64_t>(sums, 1), tiling.cluster, tiling.clusters);
  const std::int64_t packets = tile::multiple_of_8(divide_up(slice, tile::kPacketFloats));
  return static_cast<std::uint64_t>(tile::exchange_bytes(packets, tiling.cluster, tiling.clusters));
}

std::string size_fault(const RegionSignature& region) {
  if (!region.fused.empty()) return "a step kernel needs no fused steps";
  if (region.capacity <= kMaxRows) return {};
  return fmt::format("a batch of {} rows, a step kernel takes up to {}", region.capacity, kMaxRows);
}
std::string joined(std::vector<std::string> reasons) {  // each once
  for (auto one = reasons.begin(); one != reasons.end();)
    one = std::find(reasons.begin(), one, *one) == one ? one + 1 : reasons.erase(one);
  return fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace

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
  const auto add = [&](const TensorType& type) { bytes += is_array(type) ? type.bytes() : 0; };
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

std::int64_t exchange_cycles(const StepTiling& tiling, std::int64_t sums, const GpuCosts& costs) {
  if (sums == 0) return costs.no_exchange;
  if (tiling.clusters > 1) return costs.grid_exchange(tiling.clusters);
  return tiling.cluster > 1 ? costs.cluster_exchange(tiling.cluster) : costs.block_exchange;
}

// Clusters of more than two blocks do not fill all multiprocessors: 15 of 8 are resident at a time on 132.
std::uint32_t resident_clusters(const Target& target, std::uint32_t cluster) {
  const auto clusters = static_cast<std::uint32_t>(target.multiprocessors) / cluster;
  return std::max(1u, cluster > 2 ? clusters * 15 / 16 : clusters);
}

std::vector<StepTiling> grids(const StepTiling& tiling, const RegionSignature& region, const Target& target,
                              bool has_sums, std::int64_t needed) {
  std::vector<StepTiling> all;
  const auto add = [&](std::uint32_t cluster, std::uint32_t clusters) {
    StepTiling& one = all.emplace_back(tiling);
    one.cluster = cluster;
    one.clusters = clusters;
    one.scratch_bytes = scratch_bytes(region, one, target.gpu);
  };
  for (const std::uint32_t cluster : {1u, 4u, 8u})
    if (cluster == 1 || cluster <= static_cast<std::uint32_t>(target.cluster_blocks)) add(cluster, 1);
  if (has_sums && target.cluster_blocks >= 8) {
    add(8, resident_clusters(target, 8));
    if (tiling.tile == RowTile::warp) add(2, resident_clusters(target, 2));
  } else if (const std::int64_t blocks = std::min<std::int64_t>(needed, target.multiprocessors); blocks > 1) {
    add(1, static_cast<std::uint32_t>(blocks));
  }
  return all;
}

// Each stage has scratch of its own. The signature does not say which sums share a stage, so each value gets as much as
// if it were alone. The generated kernel asserts that this is enough.
std::uint64_t scratch_bytes(const RegionSignature& region, const StepTiling& tiling, const GpuCosts& costs) {
  if (tiling.tile == RowTile::block)
    return block_levels(region).scratch_bytes(tiling.blocks()) +
           block_phases(block_steps(region), region.capacity, tiling.blocks(), tiling.threads, costs).bytes;
  if (tiling.tile == RowTile::split)
    return split_plan(block_steps(region), region.capacity, tiling, costs).scratch_bytes;
  if (tiling.clusters <= 1) return 0;
  std::uint64_t bytes = 0;
  for (const StepSignature& step : region.rows)
    if (step.output.rows == 0) bytes += exchange_bytes(tiling, tile::multiple_of_4(step.output.shape.elements()));
  return bytes > 0 ? bytes : exchange_bytes(tiling, 1);
}

// Rows of a value that a step computes once would come from the arena, which a kernel writes only at its end.
std::string batch_fault(const RegionSignature& region) {
  for (std::size_t i = 0; i < region.rows.size(); ++i) {
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

std::string register_fault(const RegionSignature& region, bool parts) {
  for (const StepSignature& step : region.rows) {
    const TextCall call = call_of(step);
    const bool joins = parts && joins_parts(call), sums = parts && sums_parts(call);
    for (std::size_t i = 0; i <= step.inputs.size() - (joins ? 1 : 0); ++i) {
      const TensorType& type = i < step.inputs.size() ? step.inputs[i] : step.output;
      const std::int64_t features = feature_count(type) / (sums && type.rows > 0 ? type.rows : 1);
      if (type.rows > 0 && features > kMaxFeatures)
        return fmt::format("'{}' has {} numbers a row, rows in registers at most {}", name_of(step.op), features,
                           kMaxFeatures);
    }
  }
  for (const StepSignature& step : region.once) {
    if (std::string fault = element_fault(call_of(step)); !fault.empty()) return fault;
  }
  if (const std::uint64_t bytes = shared_bytes(region); bytes > kMaxShared)
    return fmt::format("values shared by all rows take {} bytes, the shared memory of a block has {}", bytes,
                       kMaxShared);
  return {};
}

std::uint32_t stage_count(const RegionSignature& region) {
  return region.stages.empty() ? 1 : std::ranges::max(region.stages) + 1;
}

std::string row_fault(const RegionSignature& region, const Target& target) {
  if (std::string fault = size_fault(region); !fault.empty()) return fault;
  std::vector<std::string> faults{thread_fault(region), warp_fault(region, target), block_fault(region)};
  return std::ranges::any_of(faults, &std::string::empty) ? std::string() : joined(std::move(faults));
}

RegionPlan row_choices(const RegionSignature& region, const Target& target) {
  if (std::string fault = size_fault(region); !fault.empty()) return RegionPlan::no(std::move(fault));
  if (std::string fault = batch_fault(region); !fault.empty()) return RegionPlan::no(std::move(fault));
  std::vector<StepCost> costs;
  std::vector<std::string> reasons;
  bool too_many_sums = false;
  for (const auto costs_of : {thread_costs, warp_costs, block_costs, split_costs}) {
    const TileCosts tile = costs_of(region, target);
    costs.insert(costs.end(), tile.costs.begin(), tile.costs.end());
    reasons.push_back(tile.fault);
    too_many_sums = too_many_sums || tile.too_many_sums;
  }
  if (costs.empty()) {
    RegionPlan none = RegionPlan::no(joined(std::move(reasons)));
    none.too_many_sums = too_many_sums;
    return none;
  }
  std::ranges::stable_sort(costs, {}, [](const StepCost& cost) { return std::pair(cost.is_long, cost.cycles); });
  RegionPlan plan = RegionPlan::with(costs.front().tiling);
  for (const StepCost& cost : costs) plan.choices.push_back({cost.tiling, cost.cycles});
  return plan;
}

}  // namespace graphrun::cuda
