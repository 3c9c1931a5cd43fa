// reductions.cpp: sums over axes.
#include <fmt/format.h>

#include <algorithm>

#include "graph/ops/infer.h"
#include "graph/ops/make.h"

namespace graphrun::ops {
namespace {

TensorType infer_reduction(const InferContext& context) {
  infer::require_float(context, 0);
  const TensorType& in = context.inputs[0];
  const std::vector<int> axes = infer::axes(context.attrs.integers("axes"), in.shape.rank(), context);
  const bool keepdims = context.attrs.boolean("keepdims");
  TensorType out;
  out.dtype = in.dtype;
  bool over_rows = false;
  for (int axis = 0; axis < in.shape.rank(); ++axis) {
    const bool reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    over_rows = over_rows || (reduced && axis == 0);
    if (!reduced) out.shape.push_back(in.shape[axis]);
    if (reduced && keepdims) out.shape.push_back(1);
  }
  out.rows = over_rows ? 0 : in.rows;
  return out;
}

Params pack_reduction(const ir::Attrs& attrs, std::span<const TensorType> inputs, const TensorType&) {
  return ReduceParams{infer::axis_mask(attrs.integers("axes"), inputs[0].shape.rank()), attrs.boolean("keepdims")};
}

// The shape a reduction has with keepdims: what its result broadcasts back from.
Shape kept_shape(const Shape& shape, std::uint32_t axes) {
  Shape kept = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if ((axes >> axis & 1u) != 0) kept[axis] = 1;
  }
  return kept;
}

// d sum(x) / dx = 1 for every element.
void grad_sum(GradContext& c) {
  const TensorType type = c.make.type(c.inputs[0]);
  const std::uint32_t axes = infer::axis_mask(c.attrs.integers("axes"), type.shape.rank());
  c.result[0] = make::broadcast_to(c.make, make::reshape(c.make, c.gradient, kept_shape(type.shape, axes)), type);
}

const ir::AttrSchema kAttrs = {{"axes", std::vector<std::int64_t>{}, "axes to reduce, none = all"},
                               {"keepdims", false, "keep reduced axes with extent 1"}};

}  // namespace

std::vector<OpDef> reductions() {
  return {{.name = "sum",
           .doc = "sum over the axes",
           .operands = {"x"},
           .attrs = kAttrs,
           .infer = infer_reduction,
           .grad = grad_sum,
           .rows = RowRule::reduction,
           .pack = pack_reduction}};
}

}  // namespace graphrun::ops
