// warp_costs.cpp: costs of warp tiles, whose 16 rows are in the tensor-core fragments of a warp.
#include <fmt/format.h>

#include <algorithm>

#include "executors/cuda_planner/cost/tile_costs.h"
#include "executors/cuda_planner/tiles/warp.h"
#include "graphrun/op.h"
#include "kernels/cuda/tile/shapes.h"

namespace graphrun::cuda {
namespace {

// Limit on instructions per tile, so that they stay in the instruction cache.
constexpr std::int64_t kMaxInstructions = 6000;

struct WarpWork {
  std::int64_t instructions = 0;  // per tile
  std::int64_t sum_numbers = 0;   // registers of a lane for all sums
  std::int64_t registers = 0;     // registers of a lane for the sums and live values of a stage
  std::int64_t sums = 0;          // elements of all sums
  std::int64_t scratch = 0;       // floats per warp
  std::int64_t features = 0;      // features of the widest row
};

WarpWork warp_work(const RegionSignature& region, std::string& fault) {
  WarpWork work;
  std::vector<std::int64_t> registers(stage_count(region), 0);
  for (std::size_t i = 0; i < region.rows.size(); ++i) {
    const StepSignature& step = region.rows[i];
    const TextCall call = call_of(step);
    if (fault = warp_fault(call); !fault.empty()) return work;
    const WarpShape shape = warp_shape(call);
    work.instructions += shape.instructions * (is_function(step) ? kFunctionInstructions : 1);
    work.sum_numbers += shape.sum_numbers;
    registers[region.stages[i]] += shape.sum_numbers + shape.live_numbers;
    work.scratch += shape.scratch;
    if (step.output.rows == 0) work.sums += step.output.shape.elements();
    work.features = std::max(work.features, shape.features);
  }
  work.registers = std::ranges::max(registers);
  if (work.instructions > kMaxInstructions)
    fault =
        fmt::format("16 rows take {} instructions, those of a warp at most {}", work.instructions, kMaxInstructions);
  return work;
}

bool fits(const WarpWork& work, const StepTiling& tiling, std::uint64_t shared, const Target& target) {
  const std::int64_t widest = tiling.threads > 256 ? 16 : kMaxFeatures;
  const std::uint64_t sums = static_cast<std::uint64_t>(work.sums) + 8, warps = tiling.threads / 32;
  // Floats of each warp, of messages within a cluster, and of cluster totals (kernels/cuda/tile/exchange.h).
  const std::uint64_t slice = sums / (tiling.clusters > 1 ? tiling.cluster : 1) + 4;
  const std::uint64_t floats = warps * (static_cast<std::uint64_t>(work.scratch) + sums) + sums +
                               2 * tiling.cluster * slice + (tiling.clusters > 1 ? (tiling.clusters + 1) * slice : 0);
  const std::int64_t spare = tiling.threads > 256 ? 16 : 0;
  return work.registers + spare <= max_numbers(tiling.threads) && work.features <= widest &&
         shared + floats * sizeof(float) + 1024 <= target.shared_memory;
}

std::int64_t warp_cycles(const WarpWork& work, const StepTiling& tiling, std::int64_t capacity, const GpuCosts& costs) {
  const std::int64_t warps = std::int64_t{tiling.threads / 32} * tiling.blocks();
  const std::int64_t tiles = divide_up(divide_up(capacity, tile::kTileRows), warps);
  const std::int64_t issue = divide_up(tiling.threads, 128) * tiles * work.instructions * costs.warp_issue / 100;
  const std::int64_t latency = costs.warp_start + tiles * work.instructions * costs.warp_latency / 100;
  const std::int64_t lanes = costs.warp_sum * work.sums + costs.warp_register * work.sum_numbers;
  return std::max(issue, latency) + lanes + exchange_cycles(tiling, work.sums, costs);
}

}  // namespace

std::string warp_fault(const RegionSignature& region, const Target& target) {
  std::string fault = register_fault(region);
  if (fault.empty()) warp_work(region, fault);
  if (fault.empty() && target.compute_capability < 80)
    fault = fmt::format("{} has no products of tensor cores for f32", target.name);
  return fault;
}

TileCosts warp_costs(const RegionSignature& region, const Target& target) {
  TileCosts tile{warp_fault(region, target), {}};
  if (!tile.fault.empty()) return tile;
  const WarpWork work = warp_work(region, tile.fault);
  const std::uint64_t shared = shared_bytes(region);
  for (const std::uint32_t threads : {128u, 256u, 512u})
    for (const StepTiling& tiling :
         grids({threads, 1, 1, 0, 1, RowTile::warp}, region, target, work.sums > 0, target.multiprocessors))
      if (fits(work, tiling, shared, target))
        tile.costs.push_back({tiling, warp_cycles(work, tiling, region.capacity, target.gpu)});
  if (tile.costs.empty())
    tile.fault =
        fmt::format("its sums over rows take {} registers and {} floats of each warp", work.registers, work.scratch);
  return tile;
}

}  // namespace graphrun::cuda
