// block_rows.h: code for the phases of a kernel with block tiles, except sums over rows: product parts with the steps
// that follow, and rows of blocks.
// Contract: the code runs once per step, after BlockValues::selections(), with grid barriers between phases. Not here:
// single steps (block_values.h).
#pragma once

#include "executors/cuda_planner/block_values.h"

namespace graphrun::cuda {

// Grid barrier; if it fails, the loop over steps ends.
inline constexpr std::string_view kBlockSync = "    grid.sync();\n    if (grid.failed()) break;\n";

BlockText block_rows(BlockValues& values);
// Split tile: all steps on a block's `rows` own rows, starting at row `first`.
BlockText split_rows(BlockValues& values);

}  // namespace graphrun::cuda
