// rowwise.cpp: ops that read whole vectors along one axis: softmax, log_softmax, softmax_cross_entropy.
#include "graph/ops/infer.h"
#include "graph/ops/make.h"
#include "graphrun/family_op.h"

namespace graphrun::ops {
namespace {

// dL/dx = y (g - sum(g y))
void grad_softmax(GradContext& c) {
  const Var weighted = c.gradient * c.output;
  c.result[0] = c.output * (c.gradient - make::sum(weighted, {c.attrs.integer("axis")}, true));
}

// dL/dx = g - softmax(x) sum(g)
void grad_log_softmax(GradContext& c) {
  const Var total = make::sum(c.gradient, {c.attrs.integer("axis")}, true);
  c.result[0] = c.gradient - make::op("exp", {c.output}) * total;
}

// dL/dlogits = g (softmax(logits) sum(t) - t);  dL/dt = -g log_softmax(logits)
void grad_cross_entropy(GradContext& c) {
  const Var x = c.inputs[0];
  const TensorType logits = x.type();
  const int last = logits.shape.rank() - 1;
  Shape kept = logits.shape;
  kept[last] = 1;
  const Var g = make::reshape(c.gradient, kept);
  Var target = c.inputs[1];
  Var softmax = make::op("softmax", {x});
  if (target.type().dtype == DType::i32) {
    target = make::cast(make::op("one_hot", {target}, {{"classes", logits.shape[last]}}), logits.dtype);
  } else {
    softmax = softmax * make::sum(target, {-1}, true);
  }
  if (c.wanted[0]) c.result[0] = g * (softmax - target);
  if (c.wanted[1]) c.result[1] = -(g * make::op("log_softmax", {x}));
}

}  // namespace

std::vector<OpDef> rowwise() {
  const ir::AttrDef axis{"axis", std::int64_t{-1}, "the axis that sums to one; negative counts from the end"};
  return {{.op = family_op::softmax,
           .doc = "exp(x) / sum(exp(x)) along the axis",
           .operands = {"x"},
           .attrs = {axis},
           .grad = grad_softmax,
           .rows = RowRule::rowwise,
           .pack = infer::pack_axis,
           .agreement = Agreement::relative},
          {.op = family_op::log_softmax,
           .doc = "x - log(sum(exp(x))) along the axis",
           .operands = {"x"},
           .attrs = {axis},
           .grad = grad_log_softmax,
           .rows = RowRule::rowwise,
           .pack = infer::pack_axis,
           .agreement = Agreement::absolute},
          {.op = family_op::softmax_cross_entropy,
           .doc = "-sum(target * log_softmax(logits)) along the last axis; target: one-hot, or i32 class indices",
           .operands = {"logits", "target"},
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
