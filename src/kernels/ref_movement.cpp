// ref_movement.cpp: reference kernels of ops that move elements.
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/ref_access.h"
#include "kernels/ref_families.h"

namespace graphrun::ref {
namespace {

// Copies the element at each index of `from` to that index of `to`.
void copy(const KernelArgs& args, int input, const View& from, const View& to) {
  for_elements(merged<2>({from, to}),
               [&](i64, const Offsets<2>& at) { out(args, to.offset + at[1], in(args, input, from.offset + at[0])); });
}

void transpose(const KernelArgs& args) {
  copy(args, 0, permuted(view_in(args, 0), args.params.as<PermuteParams>().axes), view_out(args));
  clear_invalid_rows(args);
}

void slice(const KernelArgs& args) {
  const auto& params = args.params.as<SliceParams>();
  const View to = view_out(args);
  copy(args, 0, sliced(view_in(args, 0), params.axis, params.start, to.extents[params.axis]), to);
  clear_invalid_rows(args);
}

void pad(const KernelArgs& args) {
  const auto& params = args.params.as<PadParams>();
  const View from = view_in(args, 0), to = view_out(args);
  for (i64 i = 0; i < to.extents.elements(); ++i) out(args, i, params.value);
  copy(args, 0, from, sliced(to, params.axis, params.before, from.extents[params.axis]));
  clear_invalid_rows(args);
}

void concat(const KernelArgs& args) {
  const int axis = args.params.as<AxisParams>().axis;
  i64 start = 0;
  for (int k = 0; k < args.inputs; ++k) {
    const View from = view_in(args, k);
    copy(args, k, from, sliced(view_out(args), axis, start, from.extents[axis]));
    start += from.extents[axis];
  }
  clear_invalid_rows(args);
}

// Calls f(index, i, j) for column j of the output and position i in the input of indices.
template <class F>
void for_indices(const KernelArgs& args, int input, i64 width, F&& f) {
  for_elements(merged<1>({view_in(args, input)}), [&](i64 i, const Offsets<1>& at) {
    for (i64 j = 0; j < width; ++j) f(static_cast<i64>(in(args, input, at[0])), i, j);
  });
}

void one_hot(const KernelArgs& args) {
  const i64 classes = args.out_type.shape[args.out_type.shape.rank() - 1];
  for_indices(args, 0, classes, [&](i64 index, i64 i, i64 j) { out(args, i * classes + j, index == j ? 1.0 : 0.0); });
  clear_invalid_rows(args);
}

void gather(const KernelArgs& args) {
  const View table = view_in(args, 0);
  const i64 width = table.extents[1];
  for_indices(args, 1, width, [&](i64 row, i64 i, i64 j) {
    const bool known = row >= 0 && row < table.extents[0];
    out(args, i * width + j, known ? in(args, 0, row * table.strides[0] + j * table.strides[1]) : 0.0);
  });
  clear_invalid_rows(args);
}

// Accumulates in double until all terms are added.
void scatter_add(const KernelArgs& args) {
  const i64 rows = args.out_type.shape[0];
  const i64 width = args.out_type.shape[1];
  double* const sums = static_cast<double*>(args.workspace);
  std::fill_n(sums, rows * width, 0.0);
  const Dims<1> updates = merged<1>({view_in(args, 1)});
  for_indices(args, 0, width, [&](i64 row, i64 i, i64 j) {
    if (row >= 0 && row < rows) sums[row * width + j] += in(args, 1, updates.offset(i * width + j));
  });
  for (i64 i = 0; i < rows * width; ++i) out(args, i, sums[i]);
}

constexpr Entry kMovements[] = {
    {Op::transpose, transpose},
    {Op::slice, slice},
    {Op::pad, pad},
    {Op::concat, concat},
    {family_op::one_hot, one_hot},
    {family_op::gather, gather},
    {Op::scatter_add, scatter_add},
};

}  // namespace

std::span<const Entry> movement() {
  return kMovements;
}

}  // namespace graphrun::ref
