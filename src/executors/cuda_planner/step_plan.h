// step_plan.h: chooses the regions over rows that run as one GPU kernel, and their blocks, by an integer cost model.
// Contract: pure functions of signature and target, independent of timings. Not here: the kernel (step_kernel.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graphrun/executor.h"

namespace graphrun::cuda {

RegionPlan plan_rows(const RegionSignature& region, const Target& target);

// Scratch in the arena for sums over clusters.
std::uint64_t scratch_bytes(const RegionSignature& region, const StepTiling& tiling);

// Cost of a tiling, in cycles of a quarter of a multiprocessor. Long code takes seconds to compile, so it is chosen
// only if there is no alternative.
struct StepCost {
  StepTiling tiling;
  std::int64_t cycles = 0;
  bool is_long = false;
};
// All candidates, the chosen one first.
std::vector<StepCost> step_costs(const RegionSignature& region, const Target& target);

}  // namespace graphrun::cuda
