// ref.h: the oracle: what each op means, in the plainest code that says it.
// Contract: double arithmetic and std:: functions, one simple loop an op, operands and results in any dtype the op has
// (f64 too, for checking gradients). Shares with the fast kernels only the list of ops.
// Leaves to others: speed (cpu/, cuda/), which steps are accepted (executors/ref).
#pragma once

#include "graphrun/kernel.h"

namespace graphrun {

KernelFn ref_kernel(Op op);  // nullptr: none
// Whether the kernel reads operands that are not dense.
bool ref_takes_views(Op op);
std::uint64_t ref_workspace(Op op, const TensorType& output);

}  // namespace graphrun
