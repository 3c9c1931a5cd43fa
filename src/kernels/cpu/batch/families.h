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
KernelFn movement_kernel(Op op);            // batches, counters, cast, broadcast_to
KernelFn rearrange_kernel(Op op, Isa isa);  // transpose … gather
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

// The output's valid elements as few merged dimensions: outer ones, then slabs of (rows, columns). strides[i][d] is
// input i's step in elements along dimension d; the innermost is 0 or 1.
inline constexpr int kBroadcastInputs = 3;
struct Broadcast {
  int outer = 0;
  std::int64_t extents[kMaxRank];                    // of the outer dimensions, the first `outer`
  std::int64_t strides[kBroadcastInputs][kMaxRank];  // likewise
  std::int64_t rows = 1, columns = 1;
  std::int64_t row[kBroadcastInputs] = {}, column[kBroadcastInputs] = {};
};
Broadcast broadcast(const KernelArgs& args, int inputs);

// Rows [first, last) of all slabs, in order: slab(offset of the output, offsets of the inputs, rows) in elements.
template <class F>
void walk_rows(const Broadcast& b, int inputs, std::int64_t first, std::int64_t last, F&& slab) {
  std::int64_t index[kMaxRank] = {};
  std::int64_t offset[kBroadcastInputs] = {};
  std::int64_t rest = first / b.rows;
  for (int d = b.outer - 1; d >= 0; --d) {
    index[d] = rest % b.extents[d];
    rest /= b.extents[d];
    for (int i = 0; i < inputs; ++i) offset[i] += index[d] * b.strides[i][d];
  }
  std::int64_t skip = first % b.rows;
  while (first < last) {
    const std::int64_t rows = std::min(b.rows - skip, last - first);
    std::int64_t at[kBroadcastInputs];
    for (int i = 0; i < inputs; ++i) at[i] = offset[i] + skip * b.row[i];
    slab(first * b.columns, static_cast<const std::int64_t*>(at), rows);
    first += rows;
    skip = 0;
    for (int d = b.outer - 1; d >= 0; --d) {
      for (int i = 0; i < inputs; ++i) offset[i] += b.strides[i][d];
      if (++index[d] < b.extents[d]) break;
      for (int i = 0; i < inputs; ++i) offset[i] -= b.strides[i][d] * b.extents[d];
      index[d] = 0;
    }
  }
}

// Calls slab(offset of the output, offsets of the inputs, rows, columns), all in elements, for pieces that cover the
// output: in parts of whole rows, or of columns where rows are few.
template <class F>
void for_each_slab(const KernelArgs& args, const Broadcast& b, int inputs, F&& slab) {
  std::int64_t rows = b.rows;
  for (int d = 0; d < b.outer; ++d) rows *= b.extents[d];
  if (rows == 0 || b.columns == 0) return;
  const int parts = parts_for(rows * b.columns);
  if (parts <= rows) {
    for_ranges(args, parts, rows, 1, [&](std::int64_t first, std::int64_t last) {
      walk_rows(b, inputs, first, last, [&](std::int64_t out, const std::int64_t* offset, std::int64_t count) {
        slab(out, offset, count, b.columns);
      });
    });
    return;
  }
  walk_rows(b, inputs, 0, rows, [&](std::int64_t out, const std::int64_t* offset, std::int64_t count) {
    const int cuts = static_cast<int>((parts + rows - 1) / rows);
    for (std::int64_t r = 0; r < count; ++r) {
      for_ranges(args, cuts, b.columns, kGrain, [&](std::int64_t first, std::int64_t last) {
        std::int64_t at[kBroadcastInputs];
        for (int i = 0; i < inputs; ++i) at[i] = offset[i] + r * b.row[i] + first * b.column[i];
        slab(out + r * b.columns + first, static_cast<const std::int64_t*>(at), std::int64_t{1}, last - first);
      });
    }
  });
}

}  // namespace graphrun::cpu
