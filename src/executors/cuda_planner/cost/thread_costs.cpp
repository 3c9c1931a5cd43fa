// thread_costs.cpp: costs of thread and pair tiles, whose rows are in the registers of one lane or two.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "executors/cuda_planner/cost/tile_costs.h"
#include "executors/cuda_planner/print/row_text.h"
#include "executors/cuda_planner/tiles/lanes.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::cuda {
namespace {

// Limit on sums over rows per thread. Its 255 registers hold these sums and the live values of a row. Spills cost more
// than the step itself.
constexpr std::int64_t kMaxSums = 104;
// Limit on multiplications per row. As straight-line code, more do not fit the instruction cache.
constexpr std::int64_t kMaxProducts = 4096;
// Multiplications above which code is long: 1,186 take 0.74 s to compile, 2,777 take 2.1 s.
constexpr std::int64_t kLongProducts = 1200;
// Instructions to swap one value between the two lanes of a pair.
constexpr std::int64_t kSwapInstructions = 4;
// Limit on groups of warps. Groups split the sums, but each of them computes all rows.
constexpr std::uint32_t kMaxGroups = 4;

// Limits for straight-line code that fits the instruction cache: rows of a thread or pair, multiplications of all rows.
constexpr std::int64_t kMaxStraight = 4, kMaxStraightPairs = 8, kMaxStraightProducts = 640;
// Limit on row data that stay in registers for the whole launch, in floats per thread.
constexpr std::int64_t kMaxKept = 96;

struct ThreadWork {
  std::int64_t instructions = 0;  // per row of a thread, without those of its sums
  std::int64_t adding = 0;        // instructions of the sums
  std::int64_t sums = 0;          // sums per thread in all stages
  std::uint32_t groups = 1;       // groups of warps, so that the sums of each fit; 0 if they do not
  std::int64_t products = 0;      // multiplications per row in all lanes
  std::int64_t loaded = 0;        // elements of a row of data
  bool same = true;               // data are the same in each step
};

// Sizes of the values that rows are summed to, by stage.
using StageSums = std::vector<std::vector<std::int64_t>>;

// Number of groups that the sums need; 0 if they do not fit. Assigns as lanes.cpp does, largest value first.
std::uint32_t groups_for(StageSums stages, std::uint32_t max_groups) {
  for (std::vector<std::int64_t>& sizes : stages) std::ranges::sort(sizes, std::greater<>());
  for (std::uint32_t groups = 1; groups <= max_groups; groups *= 2) {
    const auto fits = [&](const std::vector<std::int64_t>& sizes) {
      std::vector<std::int64_t> sums(groups, 0);
      for (const std::int64_t size : sizes) *std::ranges::min_element(sums) += size;
      return std::ranges::max(sums) <= kMaxSums;
    };
    if (std::ranges::all_of(stages, fits)) return groups;
  }
  return 0;
}

std::int64_t instructions_of(const TextCall& call, bool is_function) {
  if (call.op == Op::matmul) return row_products(call);
  std::int64_t n = feature_count(call.output);
  for (const TextOperand& input : call.inputs)
    if (input.has_rows()) n = std::max(n, feature_count(input.type));
  return is_function ? kFunctionInstructions * n : n;
}

// Work of a thread, or of each of the two lanes that share a row. The signature does not identify rows from outside, so
// they are distinguished by type.
ThreadWork work_of(const RegionSignature& region, RowTile tile) {
  ThreadWork work;
  std::set<std::pair<DType, std::int64_t>> outside;
  StageSums sums(stage_count(region));
  std::vector<bool> halves;  // whether a lane of a pair makes half of a row
  const bool pair = tile == RowTile::pair;
  bool fits = true;
  for (std::size_t i = 0; i < region.rows.size(); ++i) {
    const StepSignature& step = region.rows[i];
    const bool selects = step.op == Op::minibatch, is_sum = step.output.rows == 0;
    LaneStep lanes{pair ? 2 : 1, call_of(step), {}};
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      const std::uint32_t maker = region.makers[i][k];
      lanes.halves.push_back(maker < halves.size() && halves[maker]);
      if (!selects && step.inputs[k].rows > 0 && maker == kNoStep)
        outside.emplace(step.inputs[k].dtype, feature_count(step.inputs[k]));
    }
    work.products += row_products(lanes.call);
    work.same = work.same && !step.partial_rows;
    if (selects) {
      const auto& p = step.params.as<MinibatchParams>();
      work.loaded += feature_count(step.output);
      work.same = work.same && !p.shuffle && p.batches() == 1;
    }
    halves.push_back(lanes.makes_half());
    fits = fits && lanes.fits();
    std::int64_t instructions = instructions_of(lanes.call, is_function(step));
    const bool reads_half = step.op == Op::matmul && !is_sum && lanes.halves[0];
    if (halves.back() || reads_half || (pair && is_sum)) instructions = divide_up(instructions, 2);
    if (reads_half)
      instructions +=
          kSwapInstructions * divide_up(std::min(feature_count(step.inputs[0]), feature_count(step.output)), 2);
    (is_sum ? work.adding : work.instructions) += instructions;
    if (!is_sum) continue;
    sums[region.stages[i]].push_back(lanes.sums().numbers);
    work.sums += sums[region.stages[i]].back();
  }
  for (const auto& [dtype, n] : outside) work.loaded += n;
  if (pair && work.sums == 0) fits = false;
  work.groups = fits ? groups_for(std::move(sums), pair ? 1 : kMaxGroups) : 0;
  work.adding /= std::max(work.groups, 1u);
  work.sums /= std::max(work.groups, 1u);
  return work;
}

// A warp reduces over its lanes one value at a time, and warps of a scheduler take turns.
std::int64_t thread_cycles(const ThreadWork& work, const StepTiling& tiling, std::int64_t capacity,
                           const GpuCosts& costs) {
  const std::int64_t rows = divide_up(capacity, std::int64_t{tiling.block_rows()} * tiling.blocks());
  const std::int64_t warps = divide_up(tiling.threads, 128), lanes = tiling.tile == RowTile::pair ? 1 : 2;
  const std::int64_t instructions = work.instructions + work.adding;
  const RowTurns turns = row_turns(tiling, capacity, work.products, work.same ? work.loaded : 0);
  std::int64_t cycles = exchange_cycles(tiling, work.sums, costs);
  cycles += work.sums * costs.lane_sum(warps) / 10 + warps * rows * instructions * costs.row_instruction / 100;
  if (!turns.kept) cycles += costs.row_load * rows * work.loaded * warps * lanes;
  if (!turns.straight) cycles += rows * (costs.row_wait + instructions);
  return cycles;
}

// Reason why the sums do not fit groups of threads: one value alone is too large, or all together are.
std::string sums_fault(const RegionSignature& region, std::int64_t sums) {
  for (const StepSignature& step : region.rows) {
    const std::int64_t size = step.output.rows == 0 ? step.output.shape.elements() : 0;
    if (size > kMaxSums)
      return fmt::format("'{}' sums rows to {} numbers, a thread at most to {}", name_of(step.op), size, kMaxSums);
  }
  return fmt::format("its rows are summed to {} numbers, {} groups of threads at most {} each", sums, kMaxGroups,
                     kMaxSums);
}

}  // namespace

RowTurns row_turns(const StepTiling& tiling, std::int64_t capacity, std::int64_t products, std::int64_t same) {
  const bool pair = tiling.tile == RowTile::pair;
  RowTurns turns;
  turns.count = divide_up(capacity, std::int64_t{tiling.block_rows()} * tiling.blocks());
  turns.straight = turns.count <= (pair ? kMaxStraightPairs : kMaxStraight) &&
                   products * turns.count <= (pair ? 2 : 1) * kMaxStraightProducts;
  turns.kept = turns.straight && same > 0 && same * turns.count <= kMaxKept;
  return turns;
}

std::int64_t row_products(const TextCall& call) {
  if (call.op != Op::matmul) return 0;
  const Shape& weights = call.inputs[1].type.shape;
  const int columns = call.params->as<MatmulParams>().transpose_b ? 0 : weights.rank() - 1;
  return feature_count(call.inputs[0].type) * weights[columns];
}

std::string thread_fault(const RegionSignature& region) {
  if (std::string fault = register_fault(region); !fault.empty()) return fault;
  std::int64_t all_products = 0;
  for (const StepSignature& step : region.rows) {
    const TextCall call = call_of(step);
    if (std::string fault = row_fault(call); !fault.empty()) return fault;
    const std::int64_t products = row_products(call);
    if (products > kMaxProducts)
      return fmt::format("'{}' multiplies {} times a row, a thread's row at most {} times", name_of(step.op), products,
                         kMaxProducts);
    all_products += products;
  }
  if (all_products > kMaxProducts)
    return fmt::format("a row takes {} multiplications, a thread's at most {}", all_products, kMaxProducts);
  return {};
}

TileCosts thread_costs(const RegionSignature& region, const Target& target) {
  TileCosts tile{thread_fault(region), {}};
  if (!tile.fault.empty()) return tile;
  for (const RowTile lanes : {RowTile::thread, RowTile::pair}) {
    const ThreadWork work = work_of(region, lanes);
    for (const std::uint32_t threads : {128u, 256u}) {
      if (work.groups == 0 || threads < 64 * work.groups) continue;
      const std::int64_t needed = divide_up(std::max<std::int64_t>(region.capacity, 1), threads);
      for (const StepTiling& tiling :
           grids({threads, 1, 1, 0, work.groups, lanes}, region, target, work.sums > 0, needed))
        tile.costs.push_back(
            {tiling, thread_cycles(work, tiling, region.capacity, target.gpu), work.products > kLongProducts});
    }
  }
  if (tile.costs.empty()) tile.fault = sums_fault(region, work_of(region, RowTile::thread).sums);
  return tile;
}

}  // namespace graphrun::cuda
