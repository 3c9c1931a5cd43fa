#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "executors/cuda_planner/pair_text.h"
#include "executors/cuda_planner/row_text.h"
#include "executors/cuda_planner/tile_costs.h"
#include "graphrun/op.h"
#include "graphrun/params/matmul.h"

namespace graphrun::cuda {
namespace {

// A thread has 255 registers: sums over rows, and the values of a row that are alive at a time. What does not fit is
// kept in memory, which costs more than the step by itself.
constexpr std::int64_t kMostSums = 104;
// Multiplications of one row: as straight code, more do not fit the instruction cache.
constexpr std::int64_t kMostProducts = 4096;
// To tell the other lane of a pair a number, and to hear of another one.
constexpr std::int64_t kExchangeInstructions = 4;
// Groups of warps share out the sums, and each computes the rows: no more than this many times.
constexpr std::uint32_t kMostGroups = 4;

// Multiplications of a row step with one row.
std::int64_t products(const StepSignature& step) {
  if (step.op != Op::matmul) return 0;
  const std::int64_t a = features(step.inputs[0]);
  if (step.output.rows == 0) return a * step.inputs[1].shape[step.inputs[1].shape.rank() - 1];
  const bool transposed = step.params.as<MatmulParams>().transpose_b;
  return a * step.inputs[1].shape[transposed ? 0 : step.inputs[1].shape.rank() - 1];
}

std::string row_fault(const StepSignature& step) {
  std::string reason;
  if (row_text(call_of(step), 0, reason).empty()) return reason;
  const std::string_view op = name_of(step.op);
  if (products(step) > kMostProducts)
    return fmt::format("'{}' multiplies {} times a row, a thread's row at most {} times", op, products(step),
                       kMostProducts);
  if (step.output.rows == 0 && step.output.shape.elements() > kMostSums)
    return fmt::format("'{}' sums {} numbers over rows, a thread at most {}", op, step.output.shape.elements(),
                       kMostSums);
  return {};
}

struct ThreadWork {
  RowTile tile = RowTile::thread;
  std::int64_t instructions = 0;  // of a thread's row, without those of its sums
  std::int64_t adding = 0;        // those
  std::uint32_t groups = 1;       // of warps, so that the sums of each fit
  std::int64_t sums = 0;          // of a thread, of all stages
};

// As many as it takes, or none: the largest value first, each to the group that has least (step_kernel.cpp).
std::uint32_t groups_for(std::vector<std::int64_t> sizes) {
  std::ranges::sort(sizes, std::greater<>());
  for (std::uint32_t groups = 1; groups <= kMostGroups; groups *= 2) {
    std::vector<std::int64_t> sums(groups, 0);
    for (const std::int64_t size : sizes) *std::ranges::min_element(sums) += size;
    if (std::ranges::max(sums) <= kMostSums) return groups;
  }
  return 0;
}

ThreadWork thread_work(const RegionSignature& region) {
  ThreadWork work;
  std::vector<std::int64_t> sizes;
  for (const StepSignature& step : region.rows) {
    std::int64_t n = features(step.output);
    for (const TensorType& input : step.inputs)
      if (input.rows > 0) n = std::max(n, features(input));
    (step.output.rows == 0 ? work.adding : work.instructions) += step.op == Op::matmul ? products(step)
                                                                 : is_function(step)   ? kFunctionInstructions * n
                                                                                       : n;
    if (step.output.rows == 0) sizes.push_back(step.output.shape.elements());
  }
  for (const std::int64_t size : sizes) work.sums += size;
  work.groups = groups_for(sizes);
  return work;
}

// Of two lanes that have a row: no groups where they can't have the region.
ThreadWork pair_work(const RegionSignature& region) {
  ThreadWork work{RowTile::pair};
  std::vector<bool> halves;  // of the row steps
  for (std::size_t i = 0; i < region.rows.size(); ++i) {
    const StepSignature& step = region.rows[i];
    const TextCall call = call_of(step);
    std::vector<bool> inputs(step.inputs.size(), false);
    for (std::size_t k = 0; k < inputs.size() && i < region.makers.size(); ++k)
      if (region.makers[i][k] < halves.size()) inputs[k] = halves[region.makers[i][k]];
    const PairText pair(call, inputs);
    halves.push_back(pair.makes_half());
    if (!pair.fits()) work.groups = 0;
    std::int64_t n = features(step.output);
    for (const TensorType& input : step.inputs)
      if (input.rows > 0) n = std::max(n, features(input));
    const bool shared_out = halves.back() || (step.op == Op::matmul && inputs[0]);
    std::int64_t instructions = step.op == Op::matmul ? products(step)
                                : is_function(step)   ? kFunctionInstructions * n
                                                      : n;
    if (shared_out || step.output.rows == 0) instructions = divide_up(instructions, 2);
    if (step.output.rows > 0 && step.op == Op::matmul && inputs[0])
      instructions += kExchangeInstructions * divide_up(std::min(features(step.inputs[0]), features(step.output)), 2);
    (step.output.rows == 0 ? work.adding : work.instructions) += instructions;
    if (step.output.rows == 0) work.sums += pair.sums().numbers;
  }
  if (work.sums == 0 || work.sums > kMostSums) work.groups = 0;
  return work;
}

// One warp alone issues four instructions of five; a row by itself waits for its own results.
std::int64_t thread_cycles(const ThreadWork& work, const StepTiling& tiling, std::int64_t capacity) {
  const std::int64_t rows = divide_up(capacity, std::int64_t{tiling.block_rows()} * tiling.blocks());
  const std::int64_t instructions = work.instructions + work.adding / tiling.groups;
  const std::int64_t warps = divide_up(tiling.threads, 128);  // of a quarter
  const std::int64_t issue = warps * rows * instructions * (warps > 1 ? 115 : 125) / 100;
  const std::int64_t latency = 250 + rows * instructions / 2;
  const std::int64_t lanes =
      warps * work.sums / tiling.groups * 3 / 2 + 40 * (warps - 1) + 10 * (std::int64_t{tiling.threads} / 32);
  return std::max(issue, latency) + lanes + exchange_cycles(tiling, work.sums);
}

std::string thread_fault(const RegionSignature& region, const ThreadWork& work) {
  std::int64_t all_products = 0;
  for (const StepSignature& step : region.rows) {
    if (std::string fault = row_fault(step); !fault.empty()) return fault;
    all_products += products(step);
  }
  if (work.groups == 0)
    return fmt::format("its rows are summed to {} numbers, {} groups of threads at most {} each", work.sums,
                       kMostGroups, kMostSums);
  if (all_products > kMostProducts)
    return fmt::format("a row takes {} multiplications, a thread's at most {}", all_products, kMostProducts);
  return {};
}

// With each number of blocks and threads.
void add_costs(const ThreadWork& work, const RegionSignature& region, const Target& target,
               std::vector<StepCost>& costs) {
  const auto add = [&](std::uint32_t threads, std::uint32_t cluster, std::uint32_t clusters) {
    const StepTiling tiling{threads, cluster, clusters, 0, work.groups, work.tile};
    costs.push_back({tiling, thread_cycles(work, tiling, region.capacity)});
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
      // Clusters of 8 do not tile the multiprocessors: 15 of them are resident at a time on 132.
      if (work.sums > 0) add(threads, 8, std::max(2u, processors / 8 * 15 / 16));
    } else if (work.sums > 0 && needed > 1) {
      add(threads, 1, needed);
    }
    if (work.sums == 0 && needed > 1) add(threads, 1, needed);
  }
}

}  // namespace

TileCosts thread_costs(const RegionSignature& region, const Target& target) {
  const ThreadWork work = thread_work(region);
  TileCosts tile{thread_fault(region, work), {}};
  if (!tile.fault.empty()) return tile;
  add_costs(work, region, target, tile.costs);
  if (const ThreadWork pairs = pair_work(region); pairs.groups > 0) add_costs(pairs, region, target, tile.costs);
  return tile;
}

}  // namespace graphrun::cuda
