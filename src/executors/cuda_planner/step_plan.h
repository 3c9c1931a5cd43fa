// step_plan.h: which regions over rows a GPU runs as one kernel, and with how many blocks: a cost model in integers.
// Contract: pure functions of the signature and the target; no timing decides anything. Leaves to others: the kernel
// (step_kernel.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graphrun/executor.h"

namespace graphrun::cuda {

RegionPlan plan_rows(const RegionSignature& region, const Target& target);

// In the arena, for the sums that clusters exchange.
std::uint64_t scratch_bytes(const RegionSignature& region, const StepTiling& tiling);

// What the choice goes by, in cycles of a multiprocessor's quarter. Long code is chosen only where there is no other:
// it takes the compiler seconds.
struct StepCost {
  StepTiling tiling;
  std::int64_t cycles = 0;
  bool is_long = false;
};
// All that were looked at, the chosen one first.
std::vector<StepCost> step_costs(const RegionSignature& region, const Target& target);

}  // namespace graphrun::cuda
