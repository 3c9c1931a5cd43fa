// tile_costs.h: what a region over rows costs with each tile of its rows: with how many blocks and threads, in cycles
// of a multiprocessor's quarter, as a model has it that was measured on an H200 (2026-11-23-whole-steps.md).
// Contract: pure functions of the signature and the target, in integers. Leaves to others: the choice (step_plan.h),
// the kernel (step_kernel.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executors/cuda_planner/block_phases.h"
#include "executors/cuda_planner/scalar_text.h"
#include "executors/cuda_planner/step_plan.h"
#include "graphrun/executor.h"

namespace graphrun::cuda {

struct TileCosts {
  std::string fault;            // why the tile can't have the region; "" if it can
  std::vector<StepCost> costs;  // scratch_bytes is not filled in
};
TileCosts thread_costs(const RegionSignature& region, const Target& target);
// How a thread takes its rows, or a pair of lanes theirs, one turn after the other: of a region that multiplies
// `products` times a row, with `same` numbers of data a row that are the same each time it runs, 0 if they are not.
struct RowTurns {
  std::int64_t count = 1;
  bool straight = false;  // no loop
  bool kept = false;      // data stay in registers for the whole launch
};
RowTurns row_turns(const StepTiling& tiling, std::int64_t capacity, std::int64_t products, std::int64_t same);
TileCosts warp_costs(const RegionSignature& region, const Target& target);
TileCosts block_costs(const RegionSignature& region, const Target& target);  // scratch_bytes is
TileCosts split_costs(const RegionSignature& region, const Target& target);  // too

// ---- what both count with

constexpr std::int64_t divide_up(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}
inline bool is_array(const TensorType& type) {  // what runs once does so for each of its elements
  return type.rows == 0 && type.shape.elements() != 1;
}
constexpr std::int64_t kFunctionInstructions = 12;
constexpr std::int64_t kMostFeatures = 64;  // of a row's value, in registers

std::int64_t features(const TensorType& type);  // of a value with rows, or elements
bool is_function(const StepSignature& step);
TextCall call_of(const StepSignature& step);
// Why rows of threads or of warps, in registers, can't have the region: what all rows share is in the shared memory of
// each block, and each block computes it for itself. "" if they can.
std::string register_fault(const RegionSignature& region);
std::uint64_t shared_bytes(const RegionSignature& region);  // of that
std::uint32_t stage_of(const RegionSignature& region, std::size_t row_step);
std::uint32_t stage_count(const RegionSignature& region);
std::vector<BlockStep> block_steps(const RegionSignature& region);
std::uint64_t block_scratch_bytes(const RegionSignature& region, const StepTiling& tiling);
std::uint64_t split_scratch_bytes(const RegionSignature& region, const StepTiling& tiling);
// An exchange of sums, beside the steps that run once after it.
std::int64_t exchange_cycles(const StepTiling& tiling, std::int64_t sums);

}  // namespace graphrun::cuda
