// reductions.cpp: sums, products, extrema, their positions and logsumexp over axes.
#include <fmt/format.h>

#include <algorithm>

#include "graph/ops/infer.h"
#include "graph/ops/make.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"

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

// The operand where an extremum is reached takes the gradient; equal ones share it.
void grad_extremum(GradContext& c) {
  NodeFactory& f = c.make;
  const TensorType type = f.type(c.inputs[0]);
  const std::vector<std::int64_t> axes = c.attrs.integers("axes");
  const Shape kept = kept_shape(type.shape, infer::axis_mask(axes, type.shape.rank()));
  const ir::NodeId reached = f.add("equal", {c.inputs[0], make::reshape(f, c.output, kept)});
  const ir::NodeId mask = make::cast(f, reached, type.dtype);
  const ir::NodeId share = make::div(f, make::reshape(f, c.gradient, kept), make::sum(f, mask, axes, true));
  c.result[0] = make::mul(f, mask, share);
}

// The product of the others: y / x where nothing is zero. With zeros taken apart, y = product * zeros and the others of
// a number are product / number * zeros; those of the only zero are the product, those of one of two zeros the product
// and the other zero. `zeros` is 1 or 0 and the other zero is 0, but they are computed, so that the second derivative
// knows them.
void grad_prod(GradContext& c) {
  NodeFactory& f = c.make;
  const ir::NodeId x = c.inputs[0];
  const TensorType type = f.type(x);
  const std::vector<std::int64_t> axes = c.attrs.integers("axes");
  const Shape kept = kept_shape(type.shape, infer::axis_mask(axes, type.shape.rank()));
  const ir::NodeId zero = make::like(f, 0, x);
  const ir::NodeId one = make::like(f, 1, x);
  const ir::NodeId is_zero = f.add("equal", {x, zero});
  const ir::NodeId rest = f.add("where", {is_zero, one, x});
  const ir::NodeId product = f.add("prod", {rest}, {{"axes", axes}, {"keepdims", true}});
  const ir::NodeId zeros = f.add("prod", {f.add("where", {is_zero, x, one})}, {{"axes", axes}, {"keepdims", true}});
  const ir::NodeId without = make::mul(f, make::div(f, product, rest), zeros);
  const ir::NodeId count = make::sum(f, make::cast(f, is_zero, type.dtype), axes, true);
  const auto zero_of = [&](double zeros_in_all) {
    return f.add("logical_and", {is_zero, f.add("equal", {count, make::like(f, zeros_in_all, x)})});
  };
  const ir::NodeId sum_of_zeros = make::sum(f, f.add("where", {is_zero, x, zero}), axes, true);
  const ir::NodeId with_other_zero = make::mul(f, product, make::sub(f, sum_of_zeros, x));
  const ir::NodeId others =
      f.add("where", {zero_of(1), product, f.add("where", {zero_of(2), with_other_zero, without})});
  c.result[0] = make::mul(f, others, make::reshape(f, c.gradient, kept));
}

// d log(sum(exp(x))) = softmax(x)
void grad_logsumexp(GradContext& c) {
  NodeFactory& f = c.make;
  const TensorType type = f.type(c.inputs[0]);
  const Shape kept = kept_shape(type.shape, infer::axis_mask(c.attrs.integers("axes"), type.shape.rank()));
  const ir::NodeId softmax = f.add("exp", {make::sub(f, c.inputs[0], make::reshape(f, c.output, kept))});
  c.result[0] = make::mul(f, softmax, make::reshape(f, c.gradient, kept));
}

TensorType infer_arg(const InferContext& context) {
  infer::require_float(context, 0);
  const TensorType& x = context.inputs[0];
  const int axis = infer::axes({context.attrs.integer("axis")}, x.shape.rank(), context).front();
  if (axis == 0 && x.rows > 0) {
    context.fail("shape.rows",
                 fmt::format("{}: axis 0 is the batch; a sample's index in it means nothing", context.operand(0)));
  }
  if (x.shape[axis] == 0)
    context.fail("shape.empty", fmt::format("{} is empty along axis {}", context.operand(0), axis));
  TensorType out;
  out.dtype = DType::i32;
  out.rows = x.rows;
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (i != axis) out.shape.push_back(x.shape[i]);
  }
  return out;
}

Params pack_arg(const ir::Attrs& attrs, std::span<const TensorType> inputs, const TensorType&) {
  const std::int64_t axis = attrs.integer("axis");
  return AxisParams{static_cast<std::int32_t>(axis < 0 ? axis + inputs[0].shape.rank() : axis)};
}

ir::AttrSchema reduction_attrs() {
  return {{"axes", std::vector<std::int64_t>{}, "axes to reduce, none = all"},
          {"keepdims", false, "keep reduced axes with extent 1"}};
}

}  // namespace

std::vector<OpDef> reductions() {
  const auto reduction = [](Op op, std::string_view doc, GradFn grad) {
    return OpDef{.op = op,
                 .doc = doc,
                 .operands = {"x"},
                 .attrs = reduction_attrs(),
                 .infer = infer_reduction,
                 .grad = grad,
                 .rows = RowRule::reduction,
                 .pack = pack_reduction};
  };
  const auto position = [](Op op, std::string_view doc) {
    return OpDef{.op = op,
                 .doc = doc,
                 .operands = {"x"},
                 .attrs = {{"axis", std::int64_t{-1}, "the axis to search; negative counts from the end"}},
                 .infer = infer_arg,
                 .no_gradient = "its result is an index",
                 .rows = RowRule::rowwise,
                 .pack = pack_arg};
  };
  const auto agreeing = [](Agreement agreement, OpDef op) {
    op.agreement = agreement;
    return op;
  };
  return {
      reduction(Op::sum, "sum over the axes", grad_sum),
      agreeing(Agreement::exact,
               reduction(Op::max, "the largest over the axes; NaN if there is one, -inf of nothing", grad_extremum)),
      agreeing(Agreement::exact,
               reduction(Op::min, "the smallest over the axes; NaN if there is one, inf of nothing", grad_extremum)),
      reduction(Op::prod, "product over the axes", grad_prod),
      agreeing(
          Agreement::absolute,
          reduction(Op::logsumexp, "log(sum(exp(x))) over the axes without overflow; -inf of nothing", grad_logsumexp)),
      position(Op::argmax, "index of the first largest along the axis; of the first NaN if there is one"),
      position(Op::argmin, "index of the first smallest along the axis; of the first NaN if there is one")};
}

}  // namespace graphrun::ops
