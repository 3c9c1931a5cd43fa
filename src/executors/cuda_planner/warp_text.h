// warp_text.h: a step as a CUDA C++ expression over the rows of a warp (kernels/cuda/tile/warp.h).
// Contract: that of row_text.h. A lane has only some features of its rows, so a step that mixes features is supported
// only if it reads all of them, or if its operand is narrow enough for each lane to have it whole. Not here: steps on a
// thread's row (row_text.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "executors/cuda_planner/row_text.h"

namespace graphrun::cuda {

// The Row that a row step computes for the tile `r`; for a reduced value, a statement that adds the tile's contribution
// to the warp's `sums`, starting at `at`. `held`: name of weights kept in registers for all rows, or "".
std::string warp_text(const TextCall& call, std::int64_t at, std::string_view held);
std::string warp_fault(const TextCall& call);  // reason why a row step has no such code; "" if it has

// Fused code of a product of rows and of its only reader `add`, which adds a value shared by all rows; else "".
std::string affine_text(const TextCall& product, const TextCall& add, std::string_view product_name,
                        std::string_view held);

// Weights of a product of rows, which held() keeps in registers.
std::string weights_text(const TextCall& call);

// Cost of one step for a warp, and the registers that it occupies permanently.
struct WarpShape {
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
