// families.h: what the families of CPU kernels share: the table of an instruction set and broadcasting over rows.
// Contract: each family gives its kernel for (op, instruction set), or nullptr. Compiled for any machine: the loops
// that depend on the instruction set are called through IsaTable. Leaves to others: the loops (loops.h), the list of
// families (dispatch.cpp).
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "graphrun/kernel.h"
#include "graphrun/op_traits.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/threads/parallel.h"
#include "kernels/dims.h"

namespace graphrun {
struct MatmulParams;
struct ReduceParams;
}  // namespace graphrun

namespace graphrun::cpu {

KernelFn elementwise_kernel(Op op, Isa isa);
KernelFn product_kernel(Op op, Isa isa);  // matmul
std::uint64_t product_workspace(const MatmulParams& params, const TensorType& a, const TensorType& c);
KernelFn sum_kernel(Op op, Isa isa);
std::uint64_t sum_workspace(const ReduceParams& params, const TensorType& in);
KernelFn softmax_kernel(Op op, Isa isa);  // and its kin
std::uint64_t logsumexp_workspace(const ReduceParams& params, const TensorType& in);
KernelFn line_kernel(Op op);                // max … argmin
KernelFn movement_kernel(Op op);            // batches, counters, cast
KernelFn rearrange_kernel(Op op, Isa isa);  // broadcast_to … gather
KernelFn scatter_kernel(Op op);             // scatter_add
std::uint64_t scatter_workspace(const TensorType& indices, const TensorType& out);
KernelFn random_kernel(Op op);

template <Isa isa>
const IsaTable& table_of() {
#if defined(__x86_64__)
  if constexpr (isa == Isa::avx512) return avx512::table;
  if constexpr (isa == Isa::avx2) return avx2::table;
#endif
  return plain::table;
}

// kernel<isa>() for the instruction set.
template <class F>
KernelFn for_isa(Isa isa, F kernel) {
  if (isa == Isa::avx512) return kernel.template operator()<Isa::avx512>();
  return isa == Isa::avx2 ? kernel.template operator()<Isa::avx2>() : kernel.template operator()<Isa::plain>();
}

// Elements of the valid rows, which come first.
inline std::int64_t valid_elements(const KernelArgs& args, const TensorType& type) {
  if (type.rows == 0) return type.shape.elements();
  std::int64_t n = args.rows_of(type);
  for (int i = 1; i < type.shape.rank(); ++i) n *= type.shape[i];
  return n;
}
void clear_invalid_rows(const KernelArgs& args);  // of the output

// The output's valid elements as slabs of (rows, columns), each row a run of the innermost dimension; strides of the
// inputs, 0 where they are broadcast.
inline constexpr int kBroadcastInputs = 3;
using SlabOffsets = Offsets<kBroadcastInputs>;
struct Slabs {
  Dims<kBroadcastInputs> rows;
  Dim<kBroadcastInputs> columns;
  std::int64_t row(int input) const { return rows.rank > 0 ? rows.dim[rows.rank - 1].stride[input] : 0; }
};
Slabs slabs_of(const KernelArgs& args);

// Calls slab(offset of the output, offsets of the inputs, rows, columns), all in elements, for pieces that cover the
// output: in parts of whole rows, or of columns where rows are few.
template <class F>
void for_each_slab(const KernelArgs& args, const Slabs& s, F&& slab) {
  const std::int64_t rows = s.rows.count, columns = s.columns.extent;
  if (rows == 0 || columns == 0) return;
  const int parts = parts_for(rows * columns);
  if (parts <= rows) {
    for_ranges(args, parts, rows, 1, [&](std::int64_t first, std::int64_t last) {
      for_runs(s.rows, first, last,
               [&](std::int64_t row, const SlabOffsets& at, std::int64_t n) { slab(row * columns, at, n, columns); });
    });
    return;
  }
  const int cuts = static_cast<int>((parts + rows - 1) / rows);
  for_elements(s.rows, [&](std::int64_t row, const SlabOffsets& start) {
    for_ranges(args, cuts, columns, kGrain, [&](std::int64_t first, std::int64_t last) {
      SlabOffsets at = start;
      at.move(s.columns.stride, first);
      slab(row * columns + first, at, std::int64_t{1}, last - first);
    });
  });
}

}  // namespace graphrun::cpu
