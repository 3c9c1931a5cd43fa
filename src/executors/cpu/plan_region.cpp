// plan_region.cpp: chooses the steps that the CPU executor runs as one region, and their tiles.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "executors/cpu/cpu_executor.h"
#include "executors/cpu/element_runner.h"
#include "graphrun/op.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/tiles/tile.h"

namespace graphrun {
namespace {

// Reason to leave a step to its own kernel, over all rows at once, between two regions; "" if there is none.
std::string too_wide(const StepSignature& step, std::int64_t capacity, const RegionCosts& costs) {
  const auto samples = static_cast<std::uint64_t>(std::max(capacity, std::int64_t{1}));
  const auto wide_row = [&](const TensorType& type) {
    const std::uint64_t bytes = type.bytes() / samples;
    return bytes <= costs.max_row ? std::string() : fmt::format("{} bytes of a sample are too many for a tile", bytes);
  };
  const std::uint64_t bytes = step.output.bytes();
  if (step.output.rows == 0) {
    if (bytes > costs.max_reduced)
      return fmt::format("{} bytes are too many for the accumulators of a partition", bytes);
    if (step.op == Op::scatter_add && bytes > step.inputs[1].bytes())
      return fmt::format("accumulators of {} bytes for each partition are too many to add {} to", bytes,
                         step.inputs[1].bytes());
  } else if (std::string reason = wide_row(step.output); !reason.empty()) {
    return reason;
  }
  for (const TensorType& input : step.inputs) {
    if (step.op != Op::matmul) {
      if (std::string reason = input.rows > 0 ? wide_row(input) : std::string(); !reason.empty()) return reason;
    } else if (input.rows == 0 && step.output.rows > 0 && input.bytes() > costs.max_weights) {
      // A product may read rows in place. Other ops need their operands in the tile.
      return fmt::format("{} bytes of weights are too many to read for each tile", input.bytes());
    }
  }
  return {};
}

std::string row_step_fault(const StepSignature& step) {
  cpu::TileCall call;
  call.op = step.op;
  call.params = &step.params;
  for (const TensorType& type : step.inputs) call.inputs.push_back({type});
  call.output.type = step.output;
  std::string reason;
  cpu::make_tile_step(call, Isa::plain, reason);
  return reason;
}

std::string fused_fault(const FusedSignature& fused) {
  if (!fused.epilogue) return {};
  if (cpu::epilogue_input(*fused.epilogue) != static_cast<int>(fused.input))
    return fmt::format("cpu does no '{}' in the registers of a product", name_of(*fused.epilogue));
  // A product with several blocks of terms stores partial results.
  const Shape& rows = fused.product.inputs[0].shape;
  if (!fused.in_place || rows[rows.rank() - 1] <= cpu::kProductBlock) return {};
  return fmt::format("a product of more than {} terms overwrites the operand of '{}'", cpu::kProductBlock,
                     name_of(*fused.epilogue));
}

// Type of the region's partial results; f32 if there are none.
DType sum_type(const RegionSignature& region) {
  for (const StepSignature& step : region.rows)
    if (step.output.rows == 0) return step.output.dtype;
  return DType::f32;
}

HostTiling tiling_for(const RegionSignature& region, const RegionCosts& costs) {
  const RegionSize& size = region.size;
  const auto numbers = static_cast<std::int64_t>(size.accumulator_bytes / size_of(sum_type(region)));
  HostTiling tiling;
  tiling.accumulator_bytes = size.accumulator_bytes;
  // A partition has a vector of lanes per accumulator if these fit the L1 cache next to a tile: lanes are then added
  // once per partition instead of once per tile.
  tiling.lanes =
      size.accumulator_bytes > 0 && numbers * cpu::kVectorBytes <= static_cast<std::int64_t>(costs.lane_bytes);

  // A power of two gives 2, 4, 8 or 16 threads equal shares. Combining partial results, half a unit of work for each
  // number from another core, takes at most a quarter of the time of computing them. Clearing and adding a number's
  // lanes takes four units, at most a twelfth: with more partitions, 3,000 and 10,000 rows cost a fifth more per row
  // than 100,000.
  const std::int64_t min_work = tiling.lanes ? 12 * 4 * numbers : 4 * numbers / 2;
  const std::int64_t partitions = std::min({size.work / costs.partition_work, size.work / (min_work + 1),
                                            divide_up(region.capacity, costs.min_rows), costs.max_partitions});
  tiling.partitions =
      static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint64_t>(std::max(partitions, std::int64_t{1}))));

  // As many rows as fit, in tiles of about equal size, and at most the rows of a partition.
  const std::int64_t of_partition = divide_up(region.capacity, tiling.partitions);
  const auto fitting =
      static_cast<std::int64_t>(costs.tile_bytes / std::max<std::uint64_t>(size.tile_bytes, 1)) * kTileLanes;
  const bool reduces =
      std::ranges::any_of(region.rows, [](const StepSignature& step) { return step.output.rows == 0; });
  const std::int64_t least = reduces ? costs.min_rows : kTileLanes;
  const std::int64_t most = std::min(std::max(fitting, least), whole_lanes(of_partition));
  tiling.tile_rows = whole_lanes(divide_up(of_partition, divide_up(of_partition, most)));
  tiling.tile_bytes = size.tile_bytes * static_cast<std::uint64_t>(tiling.tile_rows / kTileLanes);
  return tiling;
}

}  // namespace

std::string CpuExecutor::region_fault(const RegionSignature& region, const Target& target) const {
  if (!region.over_elements())
    for (const StepSignature& step : region.rows)
      if (std::string fault = too_wide(step, region.capacity, target.regions); !fault.empty()) return fault;
  for (const auto* steps : {&region.rows, &region.once})
    for (const StepSignature& step : *steps)
      if (Support support = supports(step, target); !support.yes) return support.reason;
  if (region.over_elements()) return ElementRunner::fault(region);
  for (const StepSignature& step : region.rows)
    if (step.output.rows == 0 && step.output.dtype != sum_type(region))
      return fmt::format("sums over rows are both {} and {}", name_of(sum_type(region)), name_of(step.output.dtype));
  for (const StepSignature& step : region.rows)
    if (std::string fault = row_step_fault(step); !fault.empty()) return fault;
  for (const FusedSignature& fused : region.fused)
    if (std::string fault = fused_fault(fused); !fault.empty()) return fault;
  return {};
}

RegionPlan CpuExecutor::region_choices(const RegionSignature& region, const Target& target) const {
  if (std::string fault = region_fault(region, target); !fault.empty()) return RegionPlan::no(std::move(fault));
  return RegionPlan::with(region.over_elements() ? HostTiling{} : tiling_for(region, target.regions));
}

}  // namespace graphrun
