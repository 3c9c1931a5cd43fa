// tile_costs.h: regions over rows that run as one GPU kernel, and their tilings by cost, in clock cycles: work counted
// for each tile, number of blocks and number of threads, times the target's GpuCosts. Contract: pure functions of the
// signature and the target, in integers. Not here: the kernel (step_kernel.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/checked.h"
#include "executors/cuda_planner/plan/block_phases.h"
#include "executors/cuda_planner/print/scalar_text.h"
#include "graphrun/executor.h"

namespace graphrun::cuda {

// Reason why no step kernel has these steps, judged without edges; "" if one may (Executor::region_fault).
std::string row_fault(const RegionSignature& region, const Target& target);
RegionPlan row_choices(const RegionSignature& region, const Target& target);
// Scratch in the arena for sums over clusters.
std::uint64_t scratch_bytes(const RegionSignature& region, const StepTiling& tiling, const GpuCosts& costs);

// ---- tiles

// Cost of a tiling. Long code takes seconds to compile, so it is chosen only if there is no alternative.
struct StepCost {
  StepTiling tiling;
  std::int64_t cycles = 0;
  bool is_long = false;
};
struct TileCosts {
  std::string fault;  // reason if no tiling is possible; else empty
  std::vector<StepCost> costs;
  bool too_many_sums = false;  // whether a tiling may be possible with fewer sums
};
// Reason why no kernel with the tile has these steps, judged without edges; "" if one may.
std::string thread_fault(const RegionSignature& region);  // thread and pair tiles
std::string warp_fault(const RegionSignature& region, const Target& target);
std::string block_fault(const RegionSignature& region);  // split tiles have a subset of these steps

TileCosts thread_costs(const RegionSignature& region, const Target& target);
TileCosts warp_costs(const RegionSignature& region, const Target& target);
TileCosts block_costs(const RegionSignature& region, const Target& target);
TileCosts split_costs(const RegionSignature& region, const Target& target);

std::int64_t row_products(const TextCall& call);  // multiplications of a row step per row
// Loop of a thread, or a pair of lanes, over its rows. The region has `products` multiplications per row and `same`
// elements of data per row that are the same in each run, or 0.
struct RowTurns {
  std::int64_t count = 1;
  bool straight = false;  // straight-line code
  bool kept = false;      // data stay in registers for the whole launch
};
RowTurns row_turns(const StepTiling& tiling, std::int64_t capacity, std::int64_t products, std::int64_t same);

// ---- common helpers

inline bool is_array(const TensorType& type) {  // shared by all rows and not a scalar
  return type.rows == 0 && type.shape.elements() != 1;
}
constexpr std::int64_t kFunctionInstructions = 12;
constexpr std::int64_t kMaxFeatures = 64;  // per row of a value in registers

bool is_function(const StepSignature& step);
TextCall call_of(const StepSignature& step);
// Reason why tiles with rows in registers (thread, pair, warp) cannot run the region; "" if they can. Each block
// computes the values shared by all rows and keeps them in its shared memory. `parts`: warp tiles, which keep the parts
// of a concat apart (tiles/warp.h).
std::string register_fault(const RegionSignature& region, bool parts = false);
std::uint64_t shared_bytes(const RegionSignature& region);  // size of those values
std::uint32_t stage_count(const RegionSignature& region);
std::vector<BlockStep> block_steps(const RegionSignature& region);
// Cost of a cross-block reduction, without the steps that run once after it.
std::int64_t exchange_cycles(const StepTiling& tiling, std::int64_t sums, const GpuCosts& costs);
// Number of clusters of this size that are resident at a time.
std::uint32_t resident_clusters(const Target& target, std::uint32_t cluster);
// The tiling with each number of blocks that rows in registers may have: a single cluster, or, for sums over clusters,
// all resident ones. Without clusters, or without sums, as many blocks as needed.
std::vector<StepTiling> grids(const StepTiling& tiling, const RegionSignature& region, const Target& target,
                              bool has_sums, std::int64_t needed);

}  // namespace graphrun::cuda
