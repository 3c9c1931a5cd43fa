#include "executors/cuda_planner/step_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>

#include "executors/cuda_planner/row_text.h"
#include "graphrun/op.h"
#include "graphrun/params/matmul.h"

namespace graphrun::cuda {
namespace {

// A thread has 255 registers: sums over rows, and the values of a row that are alive at a time. What does not fit is
// kept in memory, which costs more than the step by itself.
constexpr std::int64_t kMostSums = 104;
constexpr std::int64_t kMostFeatures = 64;
// Multiplications of one row: as straight code, more do not fit the instruction cache.
constexpr std::int64_t kMostProducts = 4096;
// Groups of warps share out the sums, and each computes the rows: no more than this many times.
constexpr std::uint32_t kMostGroups = 4;
// What all rows share lies in the shared memory of each block, beside the exchange.
constexpr std::uint64_t kMostShared = 96 * 1024;
constexpr std::int64_t kMostRows = std::int64_t{1} << 31;

std::int64_t divide_up(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

std::int64_t features(const TensorType& type) {
  return type.rows > 0 ? feature_count(type) : type.shape.elements();
}

// Multiplications of a row step with one row.
std::int64_t products(const StepSignature& step) {
  if (step.op != Op::matmul) return 0;
  const std::int64_t a = features(step.inputs[0]);
  if (step.output.rows == 0) return a * step.inputs[1].shape[step.inputs[1].shape.rank() - 1];
  const bool transposed = step.params.as<MatmulParams>().transpose_b;
  return a * step.inputs[1].shape[transposed ? 0 : step.inputs[1].shape.rank() - 1];
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

std::string row_fault(const StepSignature& step) {
  std::string reason;
  if (row_text(call_of(step), 0, reason).empty()) return reason;
  const std::string_view op = name_of(step.op);
  if (products(step) > kMostProducts)
    return fmt::format("'{}' multiplies {} times a row, a thread's row at most {} times", op, products(step),
                       kMostProducts);
  for (std::size_t i = 0; i <= step.inputs.size(); ++i) {
    const TensorType& type = i < step.inputs.size() ? step.inputs[i] : step.output;
    if (type.rows > 0 && features(type) > kMostFeatures)
      return fmt::format("'{}' has {} numbers a row, a thread's row at most {}", op, features(type), kMostFeatures);
  }
  if (step.output.rows == 0 && step.output.shape.elements() > kMostSums)
    return fmt::format("'{}' sums {} numbers over rows, a thread at most {}", op, step.output.shape.elements(),
                       kMostSums);
  return {};
}

// Bytes of what all rows share: counted once for each step that makes it, or reads what is larger than it makes.
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

// ---- how many blocks

struct Work {
  std::int64_t instructions = 0;  // of a row, without those of its sums
  std::int64_t adding = 0;        // those
  std::uint32_t groups = 1;       // of warps, so that the sums of each fit
  std::int64_t sums = 0;          // of a thread, of all stages
  std::int64_t stages = 0;        // that reduce
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

Work work_of(const RegionSignature& region) {
  Work work;
  std::vector<std::int64_t> sizes;
  for (const StepSignature& step : region.rows) {
    constexpr std::int64_t kFunction = 12;
    const bool function = is_elementwise(step.op) && step.inputs.size() == 1;
    std::int64_t n = features(step.output);
    for (const TensorType& input : step.inputs)
      if (input.rows > 0) n = std::max(n, features(input));
    (step.output.rows == 0 ? work.adding : work.instructions) += step.op == Op::matmul ? products(step)
                                                                 : function            ? kFunction * n
                                                                                       : n;
    if (step.output.rows == 0) sizes.push_back(step.output.shape.elements());
  }
  for (const std::int64_t size : sizes) work.sums += size;
  work.groups = groups_for(sizes);
  work.stages = work.sums > 0 ? 1 : 0;
  return work;
}

// Measured on an H200 (docs/notes/2026-11-23-whole-steps.md): what an exchange takes, beside the steps that run once after it.
constexpr std::int64_t kBlockCycles = 400, kClusterCycles = 900, kGridCycles = 2600;

std::int64_t cycles_of(const Work& work, const StepTiling& tiling, std::int64_t capacity) {
  const std::int64_t rows = divide_up(capacity, std::int64_t{tiling.threads / tiling.groups} * tiling.blocks());
  const std::int64_t instructions = work.instructions + work.adding / tiling.groups;
  const std::int64_t warps = divide_up(tiling.threads, 128);  // of a quarter
  // One warp alone issues four instructions of five; a row by itself waits for its own results.
  const std::int64_t issue = warps * rows * instructions * (warps > 1 ? 115 : 125) / 100;
  const std::int64_t latency = 250 + rows * instructions / 2;
  const std::int64_t lanes = warps * work.sums / tiling.groups * 3 / 2 + 40 * (warps - 1);
  const std::int64_t exchange = work.sums == 0        ? 100
                                : tiling.clusters > 1 ? kGridCycles
                                : tiling.cluster > 1  ? kClusterCycles
                                                      : kBlockCycles;
  return std::max(issue, latency) + lanes + exchange;
}

// Of AllReduce in kernels/cuda/tile/exchange.h: packets of three floats for each cluster, of two epochs.
std::uint64_t exchange_bytes(const StepTiling& tiling, std::int64_t sums) {
  const std::int64_t slice = divide_up(divide_up(std::max<std::int64_t>(sums, 1), tiling.cluster), 4) * 4;
  const std::int64_t packets = divide_up(divide_up(slice, 3), 8) * 8;
  return 2 * static_cast<std::uint64_t>(tiling.blocks()) * static_cast<std::uint64_t>(packets) * 16;
}

}  // namespace

// Each stage exchanges in a place of its own. Which sums share one is not told: each value gets as much as if it were
// alone. The text of a kernel asserts that it is enough.
std::uint64_t scratch_bytes(const RegionSignature& region, const StepTiling& tiling) {
  if (tiling.clusters <= 1) return 0;
  std::uint64_t bytes = 0;
  for (const StepSignature& step : region.rows)
    if (step.output.rows == 0) bytes += exchange_bytes(tiling, divide_up(step.output.shape.elements(), 4) * 4);
  return bytes > 0 ? bytes : exchange_bytes(tiling, 1);
}

std::vector<StepCost> step_costs(const RegionSignature& region, const Target& target) {
  const Work work = work_of(region);
  std::vector<StepCost> costs;
  const auto add = [&](std::uint32_t threads, std::uint32_t cluster, std::uint32_t clusters) {
    StepTiling tiling{threads, cluster, clusters, 0, std::max(work.groups, 1u)};
    tiling.scratch_bytes = scratch_bytes(region, tiling);
    costs.push_back({tiling, cycles_of(work, tiling, region.capacity)});
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
  std::ranges::stable_sort(costs, {}, &StepCost::cycles);
  return costs;
}

RegionPlan plan_rows(const RegionSignature& region, const Target& target) {
  if (!region.fused.empty()) return RegionPlan::no("a thread's row needs no fused steps");
  if (region.capacity > kMostRows)
    return RegionPlan::no(fmt::format("a batch of {} rows, a step kernel takes up to {}", region.capacity, kMostRows));
  std::int64_t all_products = 0, sums = 0;
  for (const StepSignature& step : region.rows) {
    if (std::string fault = row_fault(step); !fault.empty()) return RegionPlan::no(std::move(fault));
    all_products += products(step);
    if (step.output.rows == 0) sums += step.output.shape.elements();
  }
  for (const StepSignature& step : region.once) {
    std::string reason;
    if (element_text(call_of(step), reason).empty()) return RegionPlan::no(std::move(reason));
  }
  if (work_of(region).groups == 0)
    return RegionPlan::no(fmt::format("its rows are summed to {} numbers, {} groups of threads at most {} each", sums,
                                      kMostGroups, kMostSums));
  if (all_products > kMostProducts)
    return RegionPlan::no(
        fmt::format("a row takes {} multiplications, a thread's at most {}", all_products, kMostProducts));
  if (const std::uint64_t bytes = shared_bytes(region); bytes > kMostShared)
    return RegionPlan::no(fmt::format(
        "what all rows share takes {} bytes, the shared memory of a block has room for {}", bytes, kMostShared));
  return RegionPlan::with(step_costs(region, target).front().tiling);
}

}  // namespace graphrun::cuda
