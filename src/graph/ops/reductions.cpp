// reductions.cpp: sum, product, extrema and their positions, and logsumexp over axes.
#include "graph/ops/infer.h"
#include "graph/ops/make.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::ops {
namespace {

Params pack_reduction(const OpCall& call) {
  return ReduceParams{infer::axes(call.attrs.integers("axes"), call.inputs[0].shape.rank(), call),
                      call.attrs.boolean("keepdims")};
}

// Reshapes `x` from the result's shape to that with keepdims, which broadcasts against the operand.
Var kept(const GradContext& c, Var x) {
  Shape shape = c.inputs[0].type().shape;
  const std::uint32_t axes = c.params.as<ReduceParams>().axes;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if ((axes >> axis & 1u) != 0) shape[axis] = 1;
  }
  return make::reshape(x, shape);
}

// The element at the extremum gets the gradient; equal elements share it.
void grad_extremum(GradContext& c) {
  const Var reached = make::op("equal", {c.inputs[0], kept(c, c.output)});
  const Var mask = make::cast(reached, c.inputs[0].type().dtype);
  const Var count = make::sum(mask, c.attrs.integers("axes"), true);
  c.result[0] = mask * (kept(c, c.gradient) / count);
}

// dy/dx is the product of the other elements: y / x if there is no zero. Otherwise y = product * zeros, with `product`
// over the nonzero elements. The others of a nonzero x are product / x * zeros, of the only zero `product`, and of one
// of two zeros `product` times the other zero. `zeros` and the other zero are computed from x although their values are
// known (1 or 0, and 0): second derivatives depend on them.
void grad_prod(GradContext& c) {
  using make::op;
  const Var x = c.inputs[0];
  const std::vector<std::int64_t> axes = c.attrs.integers("axes");
  const auto prod = [&](Var of) { return op("prod", {of}, {{"axes", axes}, {"keepdims", true}}); };
  const Var zero = make::like(0, x);
  const Var one = make::like(1, x);
  const Var is_zero = op("equal", {x, zero});
  const Var rest = op("where", {is_zero, one, x});
  const Var product = prod(rest);
  const Var zeros = prod(op("where", {is_zero, x, one}));
  const Var without = product / rest * zeros;
  const Var count = make::sum(make::cast(is_zero, x.type().dtype), axes, true);
  const auto zero_of = [&](double zeros_in_all) {
    return op("logical_and", {is_zero, op("equal", {count, make::like(zeros_in_all, x)})});
  };
  const Var sum_of_zeros = make::sum(op("where", {is_zero, x, zero}), axes, true);
  const Var with_other_zero = product * (sum_of_zeros - x);
  const Var others = op("where", {zero_of(1), product, op("where", {zero_of(2), with_other_zero, without})});
  c.result[0] = others * kept(c, c.gradient);
}

// d log(sum(exp(x))) = softmax(x)
void grad_logsumexp(GradContext& c) {
  const Var softmax = make::op("exp", {c.inputs[0] - kept(c, c.output)});
  c.result[0] = softmax * kept(c, c.gradient);
}

}  // namespace

std::vector<OpDef> reductions() {
  const auto reduction = [](Op op, std::string_view doc, GradFn grad, std::optional<Agreement> agreement = {}) {
    return OpDef{.op = op,
                 .doc = doc,
                 .operands = {"x"},
                 .attrs = {{"axes", std::vector<std::int64_t>{}, "axes to reduce, none = all"},
                           {"keepdims", false, "keep reduced axes with extent 1"}},
                 .grad = std::move(grad),
                 .rows = RowRule::reduction,
                 .pack = pack_reduction,
                 .agreement = agreement};
  };
  const auto position = [](Op op, std::string_view doc) {
    return OpDef{.op = op,
                 .doc = doc,
                 .operands = {"x"},
                 .attrs = {{"axis", std::int64_t{-1}, "the axis to search; negative counts from the end"}},
                 .no_gradient = "its result is an index",
                 .rows = RowRule::rowwise,
                 .pack = infer::pack_axis};
  };
  return {reduction(Op::sum, "sum over the axes",
                    [](GradContext& c) { c.result[0] = make::broadcast_to(kept(c, c.gradient), c.inputs[0].type()); }),
          reduction(Op::max, "maximum over the axes; NaN if any element is NaN, -inf for an empty axis", grad_extremum,
                    Agreement::exact),
          reduction(Op::min, "minimum over the axes; NaN if any element is NaN, inf for an empty axis", grad_extremum,
                    Agreement::exact),
          reduction(Op::prod, "product over the axes", grad_prod),
          reduction(Op::logsumexp, "log(sum(exp(x))) over the axes without overflow; -inf for an empty axis",
                    grad_logsumexp, Agreement::absolute),
          position(Op::argmax, "index of the first maximum along the axis, or of the first NaN"),
          position(Op::argmin, "index of the first minimum along the axis, or of the first NaN")};
}

}  // namespace graphrun::ops
