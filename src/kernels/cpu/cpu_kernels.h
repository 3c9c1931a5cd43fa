// cpu_kernels.h: the host kernels by op and instruction set.
// Contract: f32 (booleans where the op has them; any dtype where an op only moves bytes); the same bits for every
// instruction set. No kernel allocates or throws. Pure look-ups: safe from any thread.
// Leaves to others: which operands are supported (executors/cpu), what the ops mean (kernels/ref.h).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graphrun/kernel.h"

namespace graphrun {

enum class Isa { plain, avx2, avx512 };

std::string_view name_of(Isa isa);
std::vector<Isa> available_isas();  // those that this machine runs, plain first
// The best of them, or the one that the environment variable GRAPHRUN_ISA names. Throws Error when that is none.
Isa default_isa();

KernelFn cpu_kernel(Op op, Isa isa);  // nullptr: none
// Whether the kernel reads operands that are not dense where these views say.
bool cpu_takes_views(Op op, std::span<const View> views, const TensorType& output);
// Bytes of scratch that the op cuts its work into parts with, a function of the shapes only. A kernel may be given
// either this much or none: then the work is not cut, and a matmul over a long axis may round in another order.
std::uint64_t cpu_workspace(Op op, const Params& params, std::span<const TensorType> inputs, const TensorType& output);
// Whether less of it, or none, gives the same bits (KernelArgs::workspace_bytes).
bool cpu_spares_workspace(Op op, const Params& params, std::span<const TensorType> inputs, const TensorType& output);

}  // namespace graphrun
