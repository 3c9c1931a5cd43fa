// matmul.cpp: the product of two matrices, with either operand transposed.
#include <fmt/format.h>

#include "graph/ops/infer.h"
#include "graph/ops/make.h"

namespace graphrun::ops {
namespace {

void check_rows(const InferContext& context, bool transpose_a, bool transpose_b) {
  const TensorType& a = context.inputs[0];
  const TensorType& b = context.inputs[1];
  if (a.rows > 0 && transpose_a) {
    if (b.rows != a.rows || transpose_b) {
      context.fail("shape.rows", fmt::format("{} is summed over the batch, so {} must have the same rows",
                                             context.operand(0), context.operand(1)));
    }
  } else if (b.rows > 0) {
    context.fail("shape.rows",
                 fmt::format("{} @ {}: the batch of the second operand would become a column", context.operand(0),
                             context.operand(1)),
                 "the batch belongs to the left operand: x @ W");
  }
}

TensorType infer_matmul(const InferContext& context) {
  for (std::size_t i = 0; i < 2; ++i) {
    infer::require_float(context, i);
    if (context.inputs[i].shape.rank() != 2) {
      context.fail("shape.rank", fmt::format("{} must have 2 dimensions", context.operand(i)),
                   fmt::format("reshape({}, [-1, 1]) makes a column of a vector", context.operand_names[i]));
    }
  }
  const TensorType& a = context.inputs[0];
  const TensorType& b = context.inputs[1];
  if (a.dtype != b.dtype) {
    context.fail("dtype.mismatch",
                 fmt::format("{} and {} must have the same dtype", context.operand(0), context.operand(1)));
  }
  const bool transpose_a = context.attrs.boolean("transpose_a");
  const bool transpose_b = context.attrs.boolean("transpose_b");
  const std::int64_t k_a = a.shape[transpose_a ? 0 : 1];
  const std::int64_t k_b = b.shape[transpose_b ? 1 : 0];
  if (k_a != k_b) {
    context.fail("shape.mismatch", fmt::format("{} @ {}: the inner extents differ, {} against {}", context.operand(0),
                                               context.operand(1), k_a, k_b));
  }
  check_rows(context, transpose_a, transpose_b);
  TensorType out;
  out.dtype = a.dtype;
  out.shape = {a.shape[transpose_a ? 1 : 0], b.shape[transpose_b ? 0 : 1]};
  out.rows = transpose_a ? 0 : a.rows;
  return out;
}

// With C = op(A) op(B):  d op(A) = G op(B)^T  and  d op(B) = op(A)^T G, transposed back where op() transposes.
void grad_matmul(GradContext& c) {
  const bool ta = c.attrs.boolean("transpose_a");
  const bool tb = c.attrs.boolean("transpose_b");
  const auto product = [&](ir::NodeId x, ir::NodeId y, bool tx, bool ty) {
    return c.make.add("matmul", {x, y}, {{"transpose_a", tx}, {"transpose_b", ty}});
  };
  const ir::NodeId a = c.inputs[0];
  const ir::NodeId b = c.inputs[1];
  // Each only where it is wanted: the gradient of a batch of inputs costs as much as the forward product.
  if (c.wanted[0]) c.result[0] = ta ? product(b, c.gradient, tb, true) : product(c.gradient, b, false, !tb);
  if (c.wanted[1]) c.result[1] = tb ? product(c.gradient, a, true, ta) : product(a, c.gradient, !ta, false);
}

Params pack_matmul(const ir::Attrs& attrs, std::span<const TensorType>, const TensorType&) {
  return MatmulParams{attrs.boolean("transpose_a"), attrs.boolean("transpose_b")};
}

}  // namespace

std::vector<OpDef> matmul() {
  return {{.name = "matmul",
           .doc = "op(a) @ op(b), op() transposes when its flag is set",
           .operands = {"a", "b"},
           .attrs = {{"transpose_a", false, "use a transposed"}, {"transpose_b", false, "use b transposed"}},
           .infer = infer_matmul,
           .grad = grad_matmul,
           .rows = RowRule::contraction,
           .pack = pack_matmul}};
}

}  // namespace graphrun::ops
