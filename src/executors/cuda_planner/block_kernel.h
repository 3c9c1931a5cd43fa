// block_kernel.h: the source of a step kernel with tiles of blocks: phases of products, of rows, and of sums over rows,
// between which all blocks wait for each other.
// Contract: as step_kernel.h. What all rows share stays in the arena; an element of it is written by the block that
// has its sum over rows, or in turns. Numbers are in registers of all threads; of the last block alone where they come
// from sums over rows and nothing else needs them. Leaves to others: which phases (block_phases.h).
#pragma once

#include "executors/cuda_planner/step_kernel.h"

namespace graphrun::cuda {

StepKernel block_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region);

}  // namespace graphrun::cuda
