#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "executors/cuda_planner/pair_text.h"
#include "executors/cuda_planner/row_text.h"
#include "executors/cuda_planner/tile_costs.h"
#include "graphrun/op.h"
#include "graphrun/params/matmul.h"
#include "graphrun/params/minibatch.h"

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
constexpr std::int64_t kTellingInstructions = 4;
// Limit on groups of warps. Groups split the sums, but each of them computes all rows.
constexpr std::uint32_t kMaxGroups = 4;

// Limits for straight-line code that fits the instruction cache: rows of a thread or pair, multiplications of all rows.
constexpr std::int64_t kMaxStraight = 4, kMaxStraightPairs = 8, kMaxStraightProducts = 640;
// Limit on row data that stay in registers for the whole launch, in floats per thread.
constexpr std::int64_t kMaxKept = 96;

// Multiplications of a row step per row.
std::int64_t products(const StepSignature& step) {
  if (step.op != Op::matmul) return 0;
  const std::int64_t a = features(step.inputs[0]);
  if (step.output.rows == 0) return a * step.inputs[1].shape[step.inputs[1].shape.rank() - 1];
  const bool transposed = step.params.as<MatmulParams>().transpose_b;
  return a * step.inputs[1].shape[transposed ? 0 : step.inputs[1].shape.rank() - 1];
}

// Reason why thread and pair tiles cannot run a step; "" if they can.
std::string row_fault(const StepSignature& step) {
  std::string reason;
  if (row_text(call_of(step), 0, reason).empty()) return reason;
  if (products(step) > kMaxProducts)
    return fmt::format("'{}' multiplies {} times a row, a thread's row at most {} times", name_of(step.op),
                       products(step), kMaxProducts);
  return {};
}

struct ThreadWork {
  RowTile tile = RowTile::thread;
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

// Number of groups that the sums need; 0 if they do not fit. Assigns as thread_stage.cpp does, largest value first.
std::uint32_t groups_for(StageSums stages) {
  for (std::vector<std::int64_t>& sizes : stages) std::ranges::sort(sizes, std::greater<>());
  for (std::uint32_t groups = 1; groups <= kMaxGroups; groups *= 2) {
    const auto fits = [&](const std::vector<std::int64_t>& sizes) {
      std::vector<std::int64_t> sums(groups, 0);
      for (const std::int64_t size : sizes) *std::ranges::min_element(sums) += size;
      return std::ranges::max(sums) <= kMaxSums;
    };
    if (std::ranges::all_of(stages, fits)) return groups;
  }
  return 0;
}

std::int64_t instructions_of(const StepSignature& step) {
  std::int64_t n = features(step.output);
  for (const TensorType& input : step.inputs)
    if (input.rows > 0) n = std::max(n, features(input));
  return step.op == Op::matmul ? products(step) : is_function(step) ? kFunctionInstructions * n : n;
}

// Work common to both tiles. The signature does not identify rows from outside, so they are distinguished by type.
ThreadWork common_work(const RegionSignature& region) {
  ThreadWork work;
  std::set<std::pair<DType, std::int64_t>> outside;
  for (std::size_t i = 0; i < region.rows.size(); ++i) {
    const StepSignature& step = region.rows[i];
    work.products += products(step);
    work.same = work.same && !step.partial_rows;
    if (step.op == Op::minibatch) {
      const auto& p = step.params.as<MinibatchParams>();
      work.loaded += features(step.output);
      work.same = work.same && !p.shuffle && p.batches() == 1;
      continue;
    }
    for (std::size_t k = 0; k < step.inputs.size() && i < region.makers.size(); ++k)
      if (step.inputs[k].rows > 0 && region.makers[i][k] == kNoStep)
        outside.emplace(step.inputs[k].dtype, features(step.inputs[k]));
  }
  for (const auto& [dtype, n] : outside) work.loaded += n;
  return work;
}

ThreadWork thread_work(const RegionSignature& region) {
  ThreadWork work = common_work(region);
  StageSums sums(stage_count(region));
  for (std::size_t i = 0; i < region.rows.size(); ++i) {
    const StepSignature& step = region.rows[i];
    (step.output.rows == 0 ? work.adding : work.instructions) += instructions_of(step);
    if (step.output.rows > 0) continue;
    work.sums += step.output.shape.elements();
    sums[stage_of(region, i)].push_back(step.output.shape.elements());
  }
  work.groups = groups_for(std::move(sums));
  work.adding /= std::max(work.groups, 1u);
  work.sums /= std::max(work.groups, 1u);
  return work;
}

// Work of each of the two lanes that share a row.
ThreadWork pair_work(const RegionSignature& region) {
  ThreadWork work = common_work(region);
  work.tile = RowTile::pair;
  std::vector<std::int64_t> sums(stage_count(region), 0);
  std::vector<bool> halves;  // whether a row step makes a half
  for (std::size_t i = 0; i < region.rows.size(); ++i) {
    const StepSignature& step = region.rows[i];
    const TextCall call = call_of(step);
    std::vector<bool> inputs(step.inputs.size(), false);
    for (std::size_t k = 0; k < inputs.size() && i < region.makers.size(); ++k)
      if (region.makers[i][k] < halves.size()) inputs[k] = halves[region.makers[i][k]];
    const PairText pair(call, inputs);
    halves.push_back(pair.makes_half());
    if (!pair.fits()) work.groups = 0;
    const bool reads_half = step.op == Op::matmul && step.output.rows > 0 && inputs[0];
    std::int64_t instructions = instructions_of(step);
    if (halves.back() || reads_half || step.output.rows == 0) instructions = divide_up(instructions, 2);
    if (reads_half)
      instructions += kTellingInstructions * divide_up(std::min(features(step.inputs[0]), features(step.output)), 2);
    (step.output.rows == 0 ? work.adding : work.instructions) += instructions;
    if (step.output.rows > 0) continue;
    work.sums += pair.sums().numbers;
    sums[stage_of(region, i)] += pair.sums().numbers;
  }
  // Without edges, as in a finished Program, it is unknown how lanes split the sums.
  if (work.sums == 0 || (!region.makers.empty() && std::ranges::max(sums) > kMaxSums)) work.groups = 0;
  return work;
}

// A warp reduces over its lanes one value at a time, and warps on the same quarter of a multiprocessor take turns. Data
// that are not kept come through L1, uncoalesced. Rows in a loop wait for their own results.
std::int64_t thread_cycles(const ThreadWork& work, const StepTiling& tiling, std::int64_t capacity) {
  const std::int64_t rows = divide_up(capacity, std::int64_t{tiling.block_rows()} * tiling.blocks());
  const std::int64_t warps = divide_up(tiling.threads, 128), lanes = tiling.tile == RowTile::pair ? 1 : 2;
  const std::int64_t instructions = work.instructions + work.adding;
  const RowTurns turns = row_turns(tiling, capacity, work.products, work.same ? work.loaded : 0);
  std::int64_t cycles = exchange_cycles(tiling, work.sums);
  cycles += work.sums * (34 + 77 * warps) / 10 + warps * rows * instructions * 13 / 10;
  if (!turns.kept) cycles += 9 * rows * work.loaded * warps * lanes;
  if (!turns.straight) cycles += rows * (110 + instructions);
  return cycles;
}

std::string thread_fault(const RegionSignature& region) {
  std::int64_t all_products = 0;
  for (const StepSignature& step : region.rows) {
    if (std::string fault = row_fault(step); !fault.empty()) return fault;
    all_products += products(step);
  }
  if (all_products > kMaxProducts)
    return fmt::format("a row takes {} multiplications, a thread's at most {}", all_products, kMaxProducts);
  return {};
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

// Adds the cost of each number of blocks and threads.
void add_costs(const ThreadWork& work, const RegionSignature& region, const Target& target,
               std::vector<StepCost>& costs) {
  const auto add = [&](std::uint32_t threads, std::uint32_t cluster, std::uint32_t clusters) {
    const StepTiling tiling{threads, cluster, clusters, 0, work.groups, work.tile};
    costs.push_back({tiling, thread_cycles(work, tiling, region.capacity), work.products > kLongProducts});
  };
  const auto processors = static_cast<std::uint32_t>(std::max(target.multiprocessors, 1));
  for (const std::uint32_t threads : {128u, 256u}) {
    if (threads < 64 * work.groups) continue;
    const auto needed = static_cast<std::uint32_t>(
        std::min<std::int64_t>(divide_up(std::max<std::int64_t>(region.capacity, 1), threads), processors));
    add(threads, 1, 1);
    if (target.cluster_blocks >= 4) add(threads, 4, 1);
    if (target.cluster_blocks >= 8) {
      add(threads, 8, 1);
      // Clusters of 8 do not fill all multiprocessors: 15 of them are resident at a time on 132.
      if (work.sums > 0) add(threads, 8, std::max(2u, processors / 8 * 15 / 16));
    } else if (work.sums > 0 && needed > 1) {
      add(threads, 1, needed);
    }
    if (work.sums == 0 && needed > 1) add(threads, 1, needed);
  }
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

TileCosts thread_costs(const RegionSignature& region, const Target& target) {
  TileCosts tile{thread_fault(region), {}};
  if (!tile.fault.empty()) return tile;
  const ThreadWork threads = thread_work(region), pairs = pair_work(region);
  if (threads.groups > 0) add_costs(threads, region, target, tile.costs);
  if (pairs.groups > 0) add_costs(pairs, region, target, tile.costs);
  if (tile.costs.empty()) tile.fault = sums_fault(region, threads.sums);
  return tile;
}

}  // namespace graphrun::cuda
