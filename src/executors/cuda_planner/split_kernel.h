// split_kernel.h: the source of a step kernel with split tiles: in turns, products of slices of wide data, steps on own
// rows, sums over the rows of a cluster; then sums over clusters, and the steps that run once.
// Contract: as step_kernel.h. Of wide weights, and of what is updated with them, a block has a slice in its shared
// memory for the whole launch, of all else everything; the first cluster writes them back. Leaves to others: which
// steps (split_plan.h), steps on own rows (block_rows.h).
#pragma once

#include "executors/cuda_planner/step_kernel.h"

namespace graphrun::cuda {

StepKernel split_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region);

}  // namespace graphrun::cuda
