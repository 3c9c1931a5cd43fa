// families.h: what the families of CPU kernels share: the table of an instruction set and broadcasting over rows.
// Contract: each family gives its kernel for (op, instruction set), or nullptr. Compiled for any machine: the loops
// that depend on the instruction set are called through IsaTable. Leaves to others: the loops (loops.h), the list of
// families (dispatch.cpp).
#pragma once

#include <array>
#include <string_view>

#include "kernels/abi.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/isa.h"

namespace graphrun::cpu {

KernelFn elementwise_kernel(std::string_view op, Isa isa);
KernelFn contraction_kernel(std::string_view op, Isa isa);  // matmul and sum
KernelFn line_kernel(std::string_view op, Isa isa);         // max … argmin, softmax and its kin
KernelFn movement_kernel(std::string_view op);              // batches, counters, cast, broadcast_to
KernelFn rearrange_kernel(std::string_view op);             // transpose … gather
KernelFn random_kernel(std::string_view op);

template <Isa isa>
const IsaTable& table_of() {
#if defined(__x86_64__)
  if constexpr (isa == Isa::avx512) return avx512::table;
  if constexpr (isa == Isa::avx2) return avx2::table;
#endif
  return plain::table;
}

struct KernelEntry {
  std::string_view op;
  KernelFn of_isa[3];
};
template <std::size_t kCount>
KernelFn find_kernel(const std::array<KernelEntry, kCount>& entries, std::string_view op, Isa isa) {
  for (const KernelEntry& entry : entries)
    if (entry.op == op) return entry.of_isa[static_cast<int>(isa)];
  return nullptr;
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

// Calls slab(offset of the output, offsets of the inputs) for each slab, all in elements.
template <class F>
void for_each_slab(const Broadcast& b, int inputs, F&& slab) {
  if (b.rows == 0 || b.columns == 0) return;
  for (int d = 0; d < b.outer; ++d)
    if (b.extents[d] == 0) return;
  std::int64_t index[kMaxRank] = {};
  std::int64_t offset[kBroadcastInputs] = {};
  std::int64_t out = 0;
  for (;;) {
    slab(out, static_cast<const std::int64_t*>(offset));
    out += b.rows * b.columns;
    int d = b.outer - 1;
    for (; d >= 0; --d) {
      for (int i = 0; i < inputs; ++i) offset[i] += b.strides[i][d];
      if (++index[d] < b.extents[d]) break;
      for (int i = 0; i < inputs; ++i) offset[i] -= b.strides[i][d] * b.extents[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace graphrun::cpu
