// paired_sums.h: which sums over rows a weight gradient takes along: x^T dz reads dz, as the bias's sum of dz would.
// Contract: the sum is added up where the gradient is due, in the order of a step of its own: the bits are the same.
// Both read one value, so it is there, and nothing reads a reduced value within its stage. For strands that keep lanes.
// Leaves to others: the loops (kernels/cpu/tile_gradient_loops.h), running them.
#pragma once

#include <cstdint>
#include <vector>

#include "executors/cpu/fused_products.h"
#include "graphrun/program.h"

namespace graphrun {

struct PairedSum {
  std::uint32_t sum = kNoStep;  // a step of the phase, which this weight gradient does too
  bool taken = false;           // this sum is done by a weight gradient
};

// For each row step of the stage, [stage.rows, stage.last).
std::vector<PairedSum> pair_sums(const Phase& phase, const Stage& stage, const Program& program);

}  // namespace graphrun
