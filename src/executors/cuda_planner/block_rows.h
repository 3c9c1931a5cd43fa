// block_rows.h: the text of the phases of a kernel with tiles of blocks, but for sums over rows: parts of products with
// the steps that follow, and rows of blocks.
// Contract: the text runs once in each step, after BlockValues::selections(); between phases blocks wait for each
// other. Leaves to others: single steps (block_values.h).
#pragma once

#include "executors/cuda_planner/block_values.h"

namespace graphrun::cuda {

// All blocks wait for each other; a step that failed to is the last one.
inline constexpr std::string_view kBlockSync = "    grid.sync();\n    if (grid.failed()) break;\n";

BlockText block_rows(BlockValues& values);
// Of a split tile: all steps on `rows` own rows of a block from row `first` on.
BlockText split_rows(BlockValues& values);

}  // namespace graphrun::cuda
