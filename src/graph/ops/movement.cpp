// movement.cpp: the same elements in another shape or type.
#include <fmt/format.h>

#include "graph/ops/infer.h"
#include "graph/ops/make.h"

namespace graphrun::ops {
namespace {

using List = std::vector<std::int64_t>;

TensorType infer_reshape(const InferContext& context) {
  const TensorType& in = context.inputs[0];
  const List& wanted = context.attrs.integers("shape");
  std::int64_t known = 1;
  int open = -1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == -1 && open < 0) {
      open = static_cast<int>(i);
    } else if (wanted[i] < 0) {
      context.fail("shape.extent", "an extent must be >= 0, and only one may be -1 (what is left)");
    } else {
      known *= wanted[i];
    }
  }
  TensorType out;
  out.dtype = in.dtype;
  out.shape = Shape(wanted);
  const std::int64_t elements = in.shape.elements();
  if (open >= 0 && known != 0 && elements % known == 0) out.shape[open] = elements / known;
  if (out.shape.elements() != elements || (open >= 0 && out.shape[open] < 0)) {
    context.fail("shape.mismatch", fmt::format("{} has {} elements, they do not fill {}", context.operand(0), elements,
                                               to_string(Shape(wanted))));
  }
  out.rows = infer::regrouped_rows(context, in, out.shape);
  return out;
}

void grad_reshape(GradContext& c) {
  c.result[0] = make::reshape(c.make, c.gradient, Shape(c.make.type(c.inputs[0]).shape));
}

TensorType infer_broadcast_to(const InferContext& context) {
  const TensorType& in = context.inputs[0];
  TensorType out;
  out.dtype = in.dtype;
  out.shape = Shape(context.attrs.integers("shape"));
  out.rows = context.attrs.integer("rows");
  const int shift = out.shape.rank() - in.shape.rank();
  bool fits = shift >= 0 && (in.rows == 0 || (shift == 0 && in.rows == out.rows));
  for (int axis = 0; fits && axis < in.shape.rank(); ++axis) {
    fits = in.shape[axis] == 1 || in.shape[axis] == out.shape[axis + shift];
  }
  if (!fits) {
    context.fail("shape.mismatch", fmt::format("{} does not broadcast to {}", context.operand(0), to_string(out)));
  }
  return out;
}

// The reverse sweep sums what was broadcast.
void grad_broadcast_to(GradContext& c) {
  c.result[0] = c.gradient;
}

TensorType infer_cast(const InferContext& context) {
  TensorType out = context.inputs[0];
  out.dtype = infer::dtype_attribute(context);
  return out;
}

void grad_cast(GradContext& c) {
  const DType from = c.make.type(c.inputs[0]).dtype;
  if (is_float(from)) c.result[0] = make::cast(c.make, c.gradient, from);
}

}  // namespace

std::vector<OpDef> movement() {
  return {
      {.name = "reshape",
       .doc = "the same elements in row-major order under another shape",
       .operands = {"x"},
       .attrs = {{"shape", List{}, "the new extents; one may be -1: what is left", true}},
       .infer = infer_reshape,
       .grad = grad_reshape,
       .rows = RowRule::regroup,
       .alias = alias::view},
      {.name = "broadcast_to",
       .doc = "x repeated along axes of extent 1 and new leading axes",
       .operands = {"x"},
       .attrs = {{"shape", List{}, "the new extents", true},
                 {"rows", std::int64_t{0}, "rows a sample of the result, 0 = no batch", false, 0.0}},
       .infer = infer_broadcast_to,
       .grad = grad_broadcast_to,
       .rows = RowRule::broadcast,
       .internal = true},
      {.name = "cast",
       .doc = "x converted to another dtype; bool gives 0 and 1",
       .operands = {"x"},
       .attrs = {{"dtype", std::string("f32"), "the new dtype", true, {}, {}, {"f32", "f64", "i32", "u64", "bool"}}},
       .infer = infer_cast,
       .grad = grad_cast,
       .rows = RowRule::elementwise}};
}

}  // namespace graphrun::ops
