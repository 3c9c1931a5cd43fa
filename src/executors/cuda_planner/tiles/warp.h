// warp.h: steps that warp tiles can run (kernels/cuda/tile/warp.h), and the registers that they take.
// Contract: a lane has only some features of its rows, so a step that mixes features is supported only if it reads all
// of them, or if its operand is narrow enough for each lane to have it whole. A concat moves nothing: its operands stay
// where they are, and only products that sum over several rows of a sample read it, one part after the other (the
// gradient of a weight of several products, graph/gradients.cpp). Not here: the costs (warp_costs.cpp).
#pragma once

#include <cstdint>
#include <string>

#include "executors/cuda_planner/ir/expr.h"

namespace graphrun::cuda {

std::string warp_fault(const TextCall& call);  // reason why a warp cannot run a row step; "" if it can

// Limit on the parts of a concat: rows of a sample that a product sums.
constexpr std::int64_t kMaxParts = 8;
bool joins_parts(const TextCall& call);  // whether the step is such a concat
bool sums_parts(const TextCall& call);   // whether it is such a product

// Cost of one step for a warp, and the registers that it occupies permanently.
struct WarpShape {
  std::int64_t features = 0;                   // features of the widest row
  std::int64_t sum_rows = 0, sum_columns = 0;  // (K, N) of the Sum of a reduced value
  std::int64_t sum_numbers = 0;                // registers of a lane for sums
  std::int64_t scratch = 0;                    // floats per warp
  std::int64_t held_numbers = 0;               // registers of a lane for weights
  std::int64_t live_numbers = 0;               // registers of a lane for values that gradients need again
  std::int64_t instructions = 0;               // per tile, without those of functions
};
WarpShape warp_shape(const TextCall& call);

// Limit on registers of a lane for weights, sums and values that gradients need, in a block of this many threads. Found
// by compiling networks of one to four layers of 8 to 64 units.
std::int64_t max_numbers(std::uint32_t threads);

}  // namespace graphrun::cuda
