// rowwise.cpp: ops that look along one axis as a whole: softmax and what belongs to it.
#include <fmt/format.h>

#include <algorithm>

#include "graph/ops/infer.h"
#include "graph/ops/make.h"
#include "graphrun/op.h"
#include "graphrun/params/axes.h"

namespace graphrun::ops {
namespace {

using ir::NodeId;
using List = std::vector<std::int64_t>;

ir::AttrDef axis_attr() {
  return {"axis", std::int64_t{-1}, "the axis that sums to one; negative counts from the end"};
}

int axis_of(const ir::Attrs& attrs, int rank) {
  const std::int64_t axis = attrs.integer("axis");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

TensorType infer_along_axis(const InferContext& context) {
  infer::require_float(context, 0);
  const TensorType& x = context.inputs[0];
  const int axis = infer::axes({context.attrs.integer("axis")}, x.shape.rank(), context).front();
  if (axis == 0 && x.rows > 0) {
    context.fail("shape.rows", fmt::format("{}: axis 0 is the batch; samples are independent", context.operand(0)));
  }
  return x;
}

Params pack_axis(const ir::Attrs& attrs, std::span<const TensorType> inputs, const TensorType&) {
  return AxisParams{axis_of(attrs, inputs[0].shape.rank())};
}

// dL/dx = y (g - sum(g y))
void grad_softmax(GradContext& c) {
  const List axis = {c.attrs.integer("axis")};
  const NodeId weighted = make::mul(c.make, c.gradient, c.output);
  c.result[0] = make::mul(c.make, c.output, make::sub(c.make, c.gradient, make::sum(c.make, weighted, axis, true)));
}

// dL/dx = g - softmax(x) sum(g)
void grad_log_softmax(GradContext& c) {
  const NodeId total = make::sum(c.make, c.gradient, {c.attrs.integer("axis")}, true);
  const NodeId softmax = c.make.add("exp", {c.output});
  c.result[0] = make::sub(c.make, c.gradient, make::mul(c.make, softmax, total));
}

TensorType infer_cross_entropy(const InferContext& context) {
  infer::require_float(context, 0);
  const TensorType& logits = context.inputs[0];
  const TensorType& target = context.inputs[1];
  if (logits.shape.rank() == 0 || (logits.shape.rank() == 1 && logits.rows > 0)) {
    context.fail("shape.rank", fmt::format("{} must have classes along its last axis", context.operand(0)));
  }
  TensorType out;
  out.dtype = logits.dtype;
  out.rows = logits.rows;
  for (int axis = 0; axis + 1 < logits.shape.rank(); ++axis) out.shape.push_back(logits.shape[axis]);
  const bool one_hot = target.dtype == logits.dtype && target.shape == logits.shape;
  const bool classes = target.dtype == DType::i32 && target.shape == out.shape;
  if ((!one_hot && !classes) || target.rows != logits.rows) {
    context.fail("shape.mismatch", fmt::format("{} and {}: the target must be one-hot {} or class numbers {}",
                                               context.operand(0), context.operand(1), to_string(logits),
                                               to_string(TensorType{DType::i32, out.shape, out.rows})));
  }
  return out;
}

// dL/dlogits = g (softmax(logits) sum(t) - t);  dL/dt = -g log_softmax(logits)
void grad_cross_entropy(GradContext& c) {
  const TensorType logits = c.make.type(c.inputs[0]);
  const int rank = logits.shape.rank();
  Shape kept = logits.shape;
  kept[rank - 1] = 1;
  const NodeId g = make::reshape(c.make, c.gradient, kept);
  NodeId target = c.inputs[1];
  NodeId softmax = c.make.add("softmax", {c.inputs[0]});
  if (c.make.type(target).dtype == DType::i32) {
    target = make::cast(c.make, c.make.add("one_hot", {target}, {{"classes", logits.shape[rank - 1]}}), logits.dtype);
  } else {
    softmax = make::mul(c.make, softmax, make::sum(c.make, target, {-1}, true));
  }
  if (c.wanted[0]) c.result[0] = make::mul(c.make, g, make::sub(c.make, softmax, target));
  if (c.wanted[1]) c.result[1] = make::neg(c.make, make::mul(c.make, g, c.make.add("log_softmax", {c.inputs[0]})));
}

}  // namespace

std::vector<OpDef> rowwise() {
  return {{.op = Op::softmax,
           .doc = "exp(x) / sum(exp(x)) along the axis",
           .operands = {"x"},
           .attrs = {axis_attr()},
           .infer = infer_along_axis,
           .grad = grad_softmax,
           .rows = RowRule::rowwise,
           .pack = pack_axis,
           .agreement = Agreement::relative},
          {.op = Op::log_softmax,
           .doc = "x - log(sum(exp(x))) along the axis",
           .operands = {"x"},
           .attrs = {axis_attr()},
           .infer = infer_along_axis,
           .grad = grad_log_softmax,
           .rows = RowRule::rowwise,
           .pack = pack_axis,
           .agreement = Agreement::absolute},
          {.op = Op::softmax_cross_entropy,
           .doc = "-sum(target * log_softmax(logits)) along the last axis; target one-hot, or i32 class numbers",
           .operands = {"logits", "target"},
           .infer = infer_cross_entropy,
           .grad = grad_cross_entropy,
           .rows = RowRule::rowwise,
           .classes = [](const ir::Attrs&, std::span<const TensorType> inputs) -> std::optional<Classes> {
             const Shape& logits = inputs[0].shape;
             if (inputs[1].dtype != DType::i32) return std::nullopt;
             return Classes{1, logits[logits.rank() - 1]};
           },
           .agreement = Agreement::absolute}};
}

}  // namespace graphrun::ops
