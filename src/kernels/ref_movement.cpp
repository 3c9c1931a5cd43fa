// ref_movement.cpp: the oracle for ops that put elements elsewhere.
#include "graphrun/op.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/movement.h"
#include "kernels/ref_access.h"
#include "kernels/ref_families.h"

namespace graphrun::ref {
namespace {

// A multi-index of a row-major space and back.
struct Index {
  i64 at[kMaxRank] = {};

  Index(const Shape& shape, i64 element) {
    for (int d = shape.rank() - 1; d >= 0; --d) {
      at[d] = element % shape[d];
      element /= shape[d];
    }
  }
  i64 element_of(const Shape& shape) const {
    i64 element = 0;
    for (int d = 0; d < shape.rank(); ++d) element = element * shape[d] + at[d];
    return element;
  }
};

// out at each valid index = value(index).
template <class F>
void fill(const KernelArgs& args, F&& value) {
  const Shape shape = valid_shape(args, args.out_type);
  const i64 n = shape.elements();
  for (i64 i = 0; i < n; ++i) out(args, i, value(Index(shape, i)));
  clear_invalid_rows(args);
}

void transpose(const KernelArgs& args) {
  const auto& params = args.params.as<PermuteParams>();
  fill(args, [&](const Index& to) {
    Index from = to;
    for (int d = 0; d < args.out_type.shape.rank(); ++d) from.at[params.axes[d]] = to.at[d];
    return in(args, 0, from.element_of(args.in_type[0].shape));
  });
}

void slice(const KernelArgs& args) {
  const auto& params = args.params.as<SliceParams>();
  fill(args, [&](Index index) {
    index.at[params.axis] += params.start;
    return in(args, 0, index.element_of(args.in_type[0].shape));
  });
}

void pad(const KernelArgs& args) {
  const auto& params = args.params.as<PadParams>();
  const Shape& from = args.in_type[0].shape;
  fill(args, [&](Index index) {
    index.at[params.axis] -= params.before;
    const i64 at = index.at[params.axis];
    return at >= 0 && at < from[params.axis] ? in(args, 0, index.element_of(from)) : params.value;
  });
}

void concat(const KernelArgs& args) {
  const int axis = args.params.as<AxisParams>().axis;
  fill(args, [&](Index index) {
    int k = 0;
    while (index.at[axis] >= args.in_type[k].shape[axis]) index.at[axis] -= args.in_type[k++].shape[axis];
    return in(args, k, index.element_of(args.in_type[k].shape));
  });
}

void one_hot(const KernelArgs& args) {
  const int last = args.out_type.shape.rank() - 1;
  fill(args, [&](const Index& index) {
    return static_cast<i64>(in(args, 0, index.element_of(args.in_type[0].shape))) == index.at[last] ? 1.0 : 0.0;
  });
}

void gather(const KernelArgs& args) {
  const Shape& table = args.in_type[0].shape;
  const int last = args.out_type.shape.rank() - 1;
  fill(args, [&](const Index& index) {
    const i64 row = static_cast<i64>(in(args, 1, index.element_of(args.in_type[1].shape)));
    return row >= 0 && row < table[0] ? in(args, 0, row * table[1] + index.at[last]) : 0.0;
  });
}

// Sums are doubles until all is added.
void scatter_add(const KernelArgs& args) {
  const i64 rows = args.out_type.shape[0];
  const i64 width = args.out_type.shape[1];
  double* const sums = static_cast<double*>(args.workspace);
  std::fill_n(sums, rows * width, 0.0);
  const i64 places = valid_shape(args, args.in_type[0]).elements();
  for (i64 i = 0; i < places; ++i) {
    const i64 row = static_cast<i64>(in(args, 0, i));
    if (row < 0 || row >= rows) continue;
    for (i64 j = 0; j < width; ++j) sums[row * width + j] += in(args, 1, i * width + j);
  }
  for (i64 i = 0; i < rows * width; ++i) out(args, i, sums[i]);
}

constexpr Entry kEntries[] = {
    {Op::transpose, transpose},     {Op::slice, slice},     {Op::pad, pad},
    {Op::concat, concat},           {Op::one_hot, one_hot}, {Op::gather, gather},
    {Op::scatter_add, scatter_add},
};

}  // namespace

std::span<const Entry> movement() {
  return kEntries;
}

}  // namespace graphrun::ref
