// block_sums.h: the text of the last phase of a kernel with tiles of blocks: sums over rows, and the steps that run
// once. Contract: the text runs once in each step, after block_rows(). An element of an array is computed by the block
// that has its sum over rows, through all steps on it; single numbers by all, from sums of the last block alone where
// nothing but numbers needs them. Leaves to others: steps on numbers (once_text.h).
#pragma once

#include "executors/cuda_planner/block_values.h"

namespace graphrun::cuda {

BlockText block_sums(BlockValues& values);

}  // namespace graphrun::cuda
