// families.h: the families of CPU kernels, and helpers for valid rows.
// Contract: each family is a table of its kernels, compiled for the baseline machine; ISA-dependent loops are called
// through IsaTable. Leaves to others: the loops (loops.cpp), the list of families (dispatch.cpp).
#pragma once

#include <algorithm>
#include <span>

#include "graphrun/op_traits.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/simd/scalar_loops.h"
#include "kernels/cpu/threads/parallel.h"
#include "kernels/dims.h"
#include "kernels/kernel.h"

namespace graphrun {
struct MatmulParams;
struct RandomParams;
struct ReduceParams;
}  // namespace graphrun

namespace graphrun::cpu {

// Number of elements in the valid rows, which come first.
inline std::int64_t valid_elements(const KernelArgs& args, const TensorType& type) {
  if (type.rows == 0) return type.shape.elements();
  std::int64_t n = args.rows_of(type);
  for (int i = 1; i < type.shape.rank(); ++i) n *= type.shape[i];
  return n;
}
void clear_invalid_rows(const KernelArgs& args);  // clears the output's

// Fills the output of a random op, for batches and tiles. Sets the members of `draw` that depend on the op.
void fill_random(const IsaTable& table, Op op, const RandomParams& params, RandomDraw draw);

struct Entry {
  Op op;
  KernelFn kernels[3];  // indexed by Isa
};
// Wraps `kernel`, which leaves invalid rows of the output unwritten, to clear them.
template <void (*kernel)(const KernelArgs&, const IsaTable&), Isa isa>
void kernel_on(const KernelArgs& args) {
  kernel(args, isa_table(isa));
  clear_invalid_rows(args);
}
template <void (*kernel)(const KernelArgs&, const IsaTable&)>
constexpr Entry entry(Op op) {
  return {op, {kernel_on<kernel, Isa::plain>, kernel_on<kernel, Isa::avx2>, kernel_on<kernel, Isa::avx512>}};
}

std::span<const Entry> elementwise_kernels();  // and cast
std::span<const Entry> product_kernels();      // matmul
std::span<const Entry> line_kernels();         // sum … argmin, softmax and related ops
std::span<const Entry> movement_kernels();     // batches, counters
std::span<const Entry> rearrange_kernels();    // broadcast_to … gather
std::span<const Entry> scatter_kernels();      // scatter_add
std::span<const Entry> random_kernels();

std::uint64_t product_workspace(const MatmulParams& params, const TensorType& a, const TensorType& c);
bool product_spares_workspace(const MatmulParams& params, const TensorType& a, const TensorType& c);
std::uint64_t line_workspace(const ReduceParams& params, const TensorType& in);  // for sum and logsumexp
std::uint64_t scatter_workspace(const TensorType& indices, const TensorType& out);

}  // namespace graphrun::cpu
