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
// Limit on registers for sums and live values. Those that a lane does not have are spilled to memory, which a gradient
// of gradients cannot avoid.
constexpr std::int64_t kMaxLive = 512;

struct WarpWork {
  std::int64_t instructions = 0;  // per tile
  std::int64_t sum_numbers = 0;   // registers of a lane for all sums
  std::int64_t registers = 0;     // registers of a lane for the sums and live values of a stage
  std::int64_t live = 0;          // registers of a lane for the sums and all values of a stage that later steps read
  std::int64_t sums = 0;          // elements of all sums
  std::int64_t scratch = 0;       // floats per warp
  std::int64_t features = 0;      // features of the widest row
};

// Reason why a concat's parts cannot stay where they are; "" if they can.
std::string parts_fault(const RegionSignature& region) {
  for (std::size_t i = 0; i < region.rows.size(); ++i) {
    const bool sums = sums_parts(call_of(region.rows[i]));
    for (std::size_t k = 0; k < region.rows[i].inputs.size(); ++k) {
      const std::uint32_t maker = region.makers[i][k];
      if (maker >= region.rows.size()) continue;
      const StepSignature& made = region.rows[maker];
      const bool joins = joins_parts(call_of(made)), same_stage = region.stages[maker] == region.stages[i];
      if (!joins && !sums) continue;
      if (joins && sums && same_stage && std::ssize(made.inputs) == region.rows[i].inputs[k].rows) continue;
      return fmt::format("'{}' is not part of a warp's rows: it reads what '{}' computes, other than as parts of a sum",
                         name_of(region.rows[i].op), name_of(made.op));
    }
  }
  return {};
}

// Largest number of registers of a lane for the sums of a stage, if they count, and its values that later steps read.
std::int64_t live_numbers(const RegionSignature& region, bool with_sums) {
  const std::size_t n = region.rows.size();
  std::vector<std::size_t> last(n);  // last reader of a step's value
  for (std::size_t i = 0; i < n; ++i) {
    last[i] = i;
    const std::vector<std::uint32_t>& makers = region.makers[i];
    const bool parts = sums_parts(call_of(region.rows[i])) && makers[0] < n && makers[1] < n;
    const auto read = [&](std::uint32_t maker, std::size_t by) {
      if (maker < n) last[maker] = std::max(last[maker], by);
    };
    for (std::size_t p = 0; parts && p < region.rows[makers[0]].inputs.size(); ++p) {
      const std::uint32_t x = region.makers[makers[0]][p], y = region.makers[makers[1]][p];
      const std::size_t by = std::max(x < n ? x + 1 : 0, y < n ? y + 1 : 0);  // add_parts() of tiles/warp.cpp
      read(x, by), read(y, by);
    }
    if (parts || joins_parts(call_of(region.rows[i]))) continue;
    for (const std::uint32_t maker : makers)
      if (maker < n && region.stages[maker] == region.stages[i]) read(maker, i);
  }
  std::vector<std::int64_t> change(n + 1, 0), sums(stage_count(region), 0);
  for (std::size_t i = 0; i < n; ++i) {
    const StepSignature& step = region.rows[i];
    const TextCall call = call_of(step);
    if (with_sums) sums[region.stages[i]] += warp_shape(call).sum_numbers;
    if (step.output.rows == 0 || joins_parts(call)) continue;
    const std::int64_t numbers = 2 * tile::columns_of(feature_count(step.output));
    change[i] += numbers, change[last[i] + 1] -= numbers;
  }
  std::int64_t now = 0, most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    now += change[i];
    most = std::max(most, now + sums[region.stages[i]]);
  }
  return most;
}

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

std::int64_t tiles_of_warp(const StepTiling& tiling, std::int64_t capacity) {
  return divide_up(divide_up(capacity, tile::kTileRows), std::int64_t{tiling.threads / 32} * tiling.blocks());
}

bool fits_registers(const WarpWork& work, std::uint32_t threads) {
  return work.registers + (threads > 256 ? 16 : 0) <= max_numbers(threads);
}
// Whether a kernel that spills is still faster than single kernels: it uses the whole device, or has little to do. This
// was measured on compute capability 9.0 only.
bool may_spill(const WarpWork& work, const StepTiling& tiling, std::int64_t capacity, const Target& target) {
  return target.compute_capability >= 90 && tiling.threads <= 256 && work.live <= kMaxLive &&
         (2 * static_cast<int>(tiling.blocks()) > target.multiprocessors || tiles_of_warp(tiling, capacity) <= 4);
}

bool fits(const WarpWork& work, const StepTiling& tiling, std::int64_t capacity, std::uint64_t shared,
          const Target& target) {
  const std::int64_t widest = tiling.threads > 256 ? 16 : kMaxFeatures;
  const std::uint64_t sums = static_cast<std::uint64_t>(work.sums) + 8, warps = tiling.threads / 32;
  // Floats of each warp, of messages within a cluster, and of cluster totals (kernels/cuda/tile/exchange.h).
  const std::uint64_t slice = sums / (tiling.clusters > 1 ? tiling.cluster : 1) + 4;
  const std::uint64_t floats = warps * (static_cast<std::uint64_t>(work.scratch) + sums) + sums +
                               2 * tiling.cluster * slice + (tiling.clusters > 1 ? (tiling.clusters + 1) * slice : 0);
  return (fits_registers(work, tiling.threads) || may_spill(work, tiling, capacity, target)) &&
         work.features <= widest && shared + floats * sizeof(float) + 1024 <= target.shared_memory;
}

std::int64_t warp_cycles(const WarpWork& work, const StepTiling& tiling, std::int64_t capacity, const GpuCosts& costs) {
  const std::int64_t tiles = tiles_of_warp(tiling, capacity);
  const std::int64_t issue = divide_up(tiling.threads, 128) * tiles * work.instructions * costs.warp_issue / 100;
  const std::int64_t latency = costs.warp_start + tiles * work.instructions * costs.warp_latency / 100;
  const std::int64_t lanes = costs.warp_sum * work.sums + costs.warp_register * work.sum_numbers;
  // Spills, and code beyond the instruction cache: fits heat (321 live numbers, 12.9 us) and Burgers (449, 40.6 us).
  const std::int64_t spilled = fits_registers(work, tiling.threads) ? 0 : std::max<std::int64_t>(work.live - 256, 0);
  return std::max(issue, latency) + tiles * spilled * spilled + lanes + exchange_cycles(tiling, work.sums, costs);
}

}  // namespace

std::string warp_fault(const RegionSignature& region, const Target& target) {
  std::string fault = register_fault(region, true);
  if (fault.empty()) warp_work(region, fault);
  if (fault.empty() && target.compute_capability < 80)
    fault = fmt::format("{} has no products of tensor cores for f32", target.name);
  return fault;
}

namespace {

// Whether a warp may run the region's steps over rows if other kernels compute its sums.
bool fits_without_sums(const RegionSignature& region, const Target& target) {
  RegionSignature rows = region;
  rows.once.clear();
  const auto sums = std::erase_if(rows.rows, [](const StepSignature& step) { return step.output.rows == 0; });
  return sums > 0 && warp_fault(rows, target).empty() && live_numbers(region, false) <= kMaxLive;
}

}  // namespace

TileCosts warp_costs(const RegionSignature& region, const Target& target) {
  TileCosts tile{warp_fault(region, target), {}};
  if (tile.fault.empty()) tile.fault = parts_fault(region);
  if (tile.fault.empty()) {
    WarpWork work = warp_work(region, tile.fault);
    work.live = live_numbers(region, true);
    const std::uint64_t shared = shared_bytes(region);
    for (const std::uint32_t threads : {128u, 256u, 512u})
      for (const StepTiling& tiling :
           grids({threads, 1, 1, 0, 1, RowTile::warp}, region, target, work.sums > 0, target.multiprocessors))
        if (fits(work, tiling, region.capacity, shared, target))
          tile.costs.push_back(
              {tiling, warp_cycles(work, tiling, region.capacity, target.gpu), !fits_registers(work, tiling.threads)});
    if (tile.costs.empty())
      tile.fault =
          fmt::format("its sums over rows take {} registers and {} floats of each warp", work.registers, work.scratch);
  }
  tile.too_many_sums = !tile.fault.empty() && parts_fault(region).empty() && fits_without_sums(region, target);
  return tile;
}

}  // namespace graphrun::cuda
