// kernel.h: calling convention of host kernels: operands by address, types by reference, no allocation, no exception.
// Contract: `out` is dense row-major, and so is `in` where it has no strides; an executor gives strides to kernels only
// that take them. `out` may be the same address as an input only where the op allows
// reuse; it never overlaps an input in part. Row-valued operands (type.rows > 0) hold `rows_of(type)` valid rows; the
// rows after them are zero in every input and the kernel leaves them zero in its output.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "graphrun/params.h"
#include "graphrun/types.h"
#include "graphrun/view.h"

namespace graphrun {

namespace cpu {
class Pool;
}

struct KernelArgs {
  const void* in[kMaxOperands] = {};
  TensorType in_type[kMaxOperands];
  const std::int64_t* in_strides[kMaxOperands] = {};  // null: dense; else a stride per axis, in elements
  const Shape* in_extents[kMaxOperands] = {};         // axes of the strides, if not those of the type; else null
  int inputs = 0;
  void* out = nullptr;
  TensorType out_type;
  void* workspace = nullptr;
  std::uint64_t workspace_bytes = 0;        // smaller than requested only if the kernel supports it
  cpu::Pool* pool = nullptr;                // threads that CPU kernels share their work with; null: the caller's alone
  const std::int32_t* row_count = nullptr;  // samples in this batch; null: `capacity`
  std::int64_t capacity = 0;                // samples of a full batch
  Params params;

  template <class T>
  const T* input(int i) const {
    return static_cast<const T*>(in[i]);
  }
  template <class T>
  T* output() const {
    return static_cast<T*>(out);
  }
  // Never beyond the batch, whatever was written to the row count.
  std::int64_t samples() const {
    return row_count != nullptr ? std::clamp<std::int64_t>(*row_count, 0, capacity) : capacity;
  }
  // Valid extent of dimension 0 of an operand.
  std::int64_t rows_of(const TensorType& type) const {
    if (type.rows > 0) return type.rows * samples();
    return type.shape.rank() == 0 ? 1 : type.shape[0];
  }
  // Number of elements in the valid rows, which come first.
  std::int64_t valid_elements(const TensorType& type) const {
    if (type.rows == 0) return type.shape.elements();
    std::int64_t n = rows_of(type);
    for (int i = 1; i < type.shape.rank(); ++i) n *= type.shape[i];
    return n;
  }
  // Clears the output's.
  void clear_invalid_rows() const {
    if (out_type.rows == 0) return;
    const std::size_t used = static_cast<std::size_t>(valid_elements(out_type)) * size_of(out_type.dtype);
    std::memset(output<std::byte>() + used, 0, out_type.bytes() - used);
  }
  // The valid rows of an operand.
  View view_of(const TensorType& type) const {
    View view = dense(type.shape);
    if (type.rows > 0) view.extents[0] = rows_of(type);
    return view;
  }
  View input_view(int i) const {
    View view = view_of(in_type[i]);
    if (in_strides[i] != nullptr) std::copy_n(in_strides[i], view.extents.rank(), view.strides);
    return view;
  }
  View output_view() const { return view_of(out_type); }
  // All rows of an operand, along the axes of its strides.
  View stored_view(int i) const {
    View view = dense(in_extents[i] != nullptr ? *in_extents[i] : in_type[i].shape);
    if (in_strides[i] != nullptr) std::copy_n(in_strides[i], view.extents.rank(), view.strides);
    return view;
  }
};

// Kernels of hosts only: an operand that is a u64 scalar.
inline std::uint64_t counter(const KernelArgs& args, int input) {
  return *args.input<std::uint64_t>(input);
}
// The same: parameters of a batch. Operand `rows`, if there is one, has the number of rows in use.
inline MinibatchParams batch_params(const KernelArgs& args, int rows) {
  const auto& params = args.params.as<MinibatchParams>();
  return args.inputs > rows ? params.of_rows(counter(args, rows)) : params;
}

using KernelFn = void (*)(const KernelArgs&);

}  // namespace graphrun
