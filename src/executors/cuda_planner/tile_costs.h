// tile_costs.h: cost of a region over rows with each tile, number of blocks and number of threads, in cycles of a
// quarter of a multiprocessor. The model was measured on an H200 (2026-11-23-whole-steps.md).
// Contract: pure functions of the signature and the target, in integers. Not here: the choice (step_plan.h), the kernel
// (step_kernel.h).
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
  std::string fault;            // reason why the tile cannot run the region; "" if it can
  std::vector<StepCost> costs;  // scratch_bytes is unset unless stated otherwise
};
TileCosts thread_costs(const RegionSignature& region, const Target& target);
// Loop of a thread, or a pair of lanes, over its rows. The region has `products` multiplications per row and `same`
// elements of data per row that are the same in each run, or 0.
struct RowTurns {
  std::int64_t count = 1;
  bool straight = false;  // straight-line code
  bool kept = false;      // data stay in registers for the whole launch
};
RowTurns row_turns(const StepTiling& tiling, std::int64_t capacity, std::int64_t products, std::int64_t same);
TileCosts warp_costs(const RegionSignature& region, const Target& target);
TileCosts block_costs(const RegionSignature& region, const Target& target);  // sets scratch_bytes
TileCosts split_costs(const RegionSignature& region, const Target& target);  // sets scratch_bytes

// ---- common helpers

constexpr std::int64_t divide_up(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}
inline bool is_array(const TensorType& type) {  // shared by all rows and not a scalar
  return type.rows == 0 && type.shape.elements() != 1;
}
constexpr std::int64_t kFunctionInstructions = 12;
constexpr std::int64_t kMaxFeatures = 64;  // per row of a value in registers

std::int64_t features(const TensorType& type);  // per row, or elements of a value without rows
bool is_function(const StepSignature& step);
TextCall call_of(const StepSignature& step);
// Reason why tiles with rows in registers (thread, pair, warp) cannot run the region; "" if they can. Each block
// computes the values shared by all rows and keeps them in its shared memory.
std::string register_fault(const RegionSignature& region);
std::uint64_t shared_bytes(const RegionSignature& region);  // size of those values
std::uint32_t stage_of(const RegionSignature& region, std::size_t row_step);
std::uint32_t stage_count(const RegionSignature& region);
std::vector<BlockStep> block_steps(const RegionSignature& region);
std::uint64_t block_scratch_bytes(const RegionSignature& region, const StepTiling& tiling);
std::uint64_t split_scratch_bytes(const RegionSignature& region, const StepTiling& tiling);
// Cost of a cross-block reduction, without the steps that run once after it.
std::int64_t exchange_cycles(const StepTiling& tiling, std::int64_t sums);

}  // namespace graphrun::cuda
