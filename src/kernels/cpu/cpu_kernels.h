// cpu_kernels.h: the host kernels by op and instruction set.
// Contract: f32 (booleans where the op has them; any dtype where an op only moves bytes); the same bits for every
// instruction set. No kernel allocates or throws. Pure look-ups: safe from any thread.
// Leaves to others: which operands are supported (executors/cpu), the meaning of ops (kernels/ref.h).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/kernel.h"

namespace graphrun {

enum class Isa { plain, avx2, avx512 };

std::string_view name_of(Isa isa);
std::vector<Isa> available_isas();  // those supported by this machine, plain first
// The best available one, or the one named by GRAPHRUN_ISA. Throws Error if that is not available.
Isa default_isa();

KernelFn cpu_kernel(Op op, Isa isa);  // nullptr: none
bool cpu_takes_f64(Op op);            // whether it computes in f64, too
// Returns whether the kernel accepts operands with these non-dense views.
bool cpu_takes_views(Op op, std::span<const View> views, const TensorType& output);
// Bytes of scratch for splitting the op's work into parts, a function of the shapes only. A kernel gets either this
// much or none. Without it the work is not split, and a matmul over a long axis may round in another order.
std::uint64_t cpu_workspace(Op op, const Params& params, std::span<const TensorType> inputs, const TensorType& output);
// Returns whether results are bitwise equal with less or no workspace (KernelArgs::workspace_bytes).
bool cpu_spares_workspace(Op op, const Params& params, std::span<const TensorType> inputs, const TensorType& output);

}  // namespace graphrun
