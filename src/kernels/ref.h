// ref.h: reference kernels: the meaning of each op, in the plainest code that expresses it.
// Contract: double arithmetic and std:: functions, one simple loop per op, operands and results in any dtype that the
// op has (also f64, for gradient checks). Shares only the list of ops with the fast kernels; cpu runs its counters and
// states.
// Leaves to others: speed (cpu/, cuda/), which steps are accepted (executors/ref).
#pragma once

#include "kernels/kernel.h"

namespace graphrun {

KernelFn ref_kernel(Op op);  // nullptr: none
// Returns whether the kernel accepts non-dense operands.
bool ref_takes_views(Op op);
std::uint64_t ref_workspace(Op op, const TensorType& output);

}  // namespace graphrun
