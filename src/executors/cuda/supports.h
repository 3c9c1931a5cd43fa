// supports.h: what the CUDA kernels can run, and the scratch they ask of the plan.
// Contract: a pure function of (step, machine numbers); no CUDA header, no device, so a plan for a GPU can be made
// anywhere.
// Leaves to others: the kernels themselves (kernels/cuda/launcher.h: find_kernel).
#pragma once

#include "graphrun/executor.h"
#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

Support supports(const StepSignature& step, const Machine& machine);

}  // namespace graphrun::cuda
