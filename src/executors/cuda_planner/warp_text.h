// warp_text.h: a step as an expression of CUDA C++ over the rows of a warp (kernels/cuda/tile/warp.h).
// Contract: as row_text.h. A lane has some features of its rows only, so a step that mixes features of a row has no
// text unless it reads all of them, or its operand is narrow enough for each lane to have it whole. Leaves to others:
// steps of a thread's row (row_text.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "executors/cuda_planner/scalar_text.h"

namespace graphrun::cuda {

// The Row that a row step computes for the tile `r`; of a reduced value a statement that adds the tile's part to the
// numbers from `at` on of the warp's `sums`. `held`: weights that registers have for all rows, "" for none.
std::string warp_text(const TextCall& call, std::int64_t at, std::string_view held, std::string& reason);

// A product of rows whose results `add` alone reads, to add what all rows share: as one. "" if they are not.
std::string affine_text(const TextCall& product, const TextCall& add, std::string_view product_name,
                        std::string_view held);

// The weights of a product of rows; what held() keeps in registers.
std::string weights_text(const TextCall& call);

// A warp's share of what one step costs, and keeps in registers all the time.
struct WarpShape {
  std::int64_t sum_rows = 0, sum_columns = 0;  // of a reduced value: what Sum has, (K, N)
  std::int64_t sum_numbers = 0;                // in registers of a lane
  std::int64_t scratch = 0;                    // floats of a warp
  std::int64_t held_numbers = 0;               // of weights
  std::int64_t live_numbers = 0;               // of a row's value that its gradient needs again
  std::int64_t instructions = 0;               // of a tile, beside those of functions
};
WarpShape warp_shape(const TextCall& call);

// Of weights, sums, and values that wait for their gradients: numbers of a lane, in a block of so many threads, beside
// what it computes with. Found by compiling networks of one to four layers of 8 to 64 units.
std::int64_t most_numbers(std::uint32_t threads);

}  // namespace graphrun::cuda
