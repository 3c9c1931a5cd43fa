// matmul.cpp: matrix product with optional transposes; leading dimensions broadcast as in NumPy.
#include <fmt/format.h>

#include <algorithm>

#include "graph/ops/infer.h"
#include "graph/ops/make.h"
#include "graphrun/op.h"
#include "graphrun/params/matmul.h"

namespace graphrun::ops {
namespace {

// Rows of the product. The batch may be the rows of a plain matrix, contracted away, or a leading dimension.
std::int64_t output_rows(const InferContext& context, const Shape& out, bool transpose_a, bool transpose_b) {
  const TensorType& a = context.inputs[0];
  const TensorType& b = context.inputs[1];
  const bool a_leads = a.rows > 0 && a.shape.rank() > 2;
  const bool b_leads = b.rows > 0 && b.shape.rank() > 2;
  const std::string product = fmt::format("{} @ {}", context.operand(0), context.operand(1));
  if (a_leads || b_leads) {
    const std::int64_t rows = a_leads ? a.rows : b.rows;
    for (const TensorType& x : context.inputs) {
      const bool leads = x.shape.rank() == out.rank() && x.shape.rank() > 2;
      if (x.rows > 0 ? !leads || x.rows != rows : leads && x.shape[0] != 1) {
        context.fail("shape.rows", product + ": the batch must be the first of the leading dimensions of both");
      }
    }
    return rows;
  }
  if (a.rows > 0 && transpose_a) {
    if (b.rows != a.rows || transpose_b) {
      context.fail("shape.rows", fmt::format("{} is summed over the batch, so {} must have the same rows",
                                             context.operand(0), context.operand(1)));
    }
    return 0;
  }
  if (b.rows > 0) {
    context.fail("shape.rows", product + ": the batch of the second operand would become a column",
                 "the batch belongs to the left operand: x @ W");
  }
  if (a.rows > 0 && out.rank() > 2) context.fail("shape.rows", product + ": the batch would no longer be dimension 0");
  return a.rows;
}

void append_leading(const InferContext& context, Shape& out) {
  const Shape& a = context.inputs[0].shape;
  const Shape& b = context.inputs[1].shape;
  const int rank = std::max(a.rank(), b.rank());
  for (int axis = 0; axis < rank - 2; ++axis) {
    const int in_a = axis - (rank - a.rank());
    const int in_b = axis - (rank - b.rank());
    const std::int64_t of_a = in_a < 0 ? 1 : a[in_a];
    const std::int64_t of_b = in_b < 0 ? 1 : b[in_b];
    if (of_a != of_b && of_a != 1 && of_b != 1) {
      context.fail("shape.mismatch",
                   fmt::format("{} @ {}: the leading dimensions do not broadcast, {} against {}", context.operand(0),
                               context.operand(1), extent_text(of_a), extent_text(of_b)));
    }
    out.push_back(of_a == 1 ? of_b : of_a);
  }
}

TensorType infer_matmul(const InferContext& context) {
  for (std::size_t i = 0; i < 2; ++i) {
    infer::require_float(context, i);
    if (context.inputs[i].shape.rank() < 2) {
      context.fail("shape.rank", fmt::format("{} must have at least 2 dimensions", context.operand(i)),
                   fmt::format("reshape({}, shape=[-1, 1]) makes a column of a vector", context.operand_names[i]));
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
  const int ra = a.shape.rank();
  const int rb = b.shape.rank();
  const std::int64_t k_a = a.shape[ra - (transpose_a ? 2 : 1)];
  const std::int64_t k_b = b.shape[rb - (transpose_b ? 1 : 2)];
  if (k_a != k_b) {
    const bool batch_b = b.rows > 0 && rb == 2 && !transpose_b;
    const std::string inner_b = batch_b ? "the batch" : extent_text(k_b);
    context.fail("shape.mismatch",
                 fmt::format("{} @ {}: the inner extents differ, {} against {}", context.operand(0), context.operand(1),
                             a.rows > 0 && ra == 2 && transpose_a ? "the batch" : extent_text(k_a), inner_b),
                 batch_b ? "the batch belongs to the left operand: x @ W" : "");
  }
  TensorType out{a.dtype, {}, 0};
  append_leading(context, out.shape);
  out.shape.push_back(a.shape[ra - (transpose_a ? 1 : 2)]);
  out.shape.push_back(b.shape[rb - (transpose_b ? 2 : 1)]);
  out.rows = output_rows(context, out.shape, transpose_a, transpose_b);
  return out;
}

// With C = op(A) op(B):  d op(A) = G op(B)^T  and  d op(B) = op(A)^T G, transposed back where op() transposes.
void grad_matmul(GradContext& c) {
  const bool ta = c.attrs.boolean("transpose_a");
  const bool tb = c.attrs.boolean("transpose_b");
  const auto product = [](Var x, Var y, bool tx, bool ty) {
    return make::op("matmul", {x, y}, {{"transpose_a", tx}, {"transpose_b", ty}});
  };
  const Var a = c.inputs[0];
  const Var b = c.inputs[1];
  // Only wanted gradients are added: that of a batch of inputs costs as much as the forward product.
  if (c.wanted[0]) c.result[0] = ta ? product(b, c.gradient, tb, true) : product(c.gradient, b, false, !tb);
  if (c.wanted[1]) c.result[1] = tb ? product(c.gradient, a, true, ta) : product(a, c.gradient, !ta, false);
}

Params pack_matmul(const ir::Attrs& attrs, std::span<const TensorType>, const TensorType&) {
  return MatmulParams{attrs.boolean("transpose_a"), attrs.boolean("transpose_b")};
}

}  // namespace

std::vector<OpDef> matmul() {
  return {{.op = Op::matmul,
           .doc = "a @ b; the flags first transpose the last two axes of an operand; leading axes broadcast",
           .operands = {"a", "b"},
           .attrs = {{"transpose_a", false, "use a transposed"}, {"transpose_b", false, "use b transposed"}},
           .infer = infer_matmul,
           .grad = grad_matmul,
           .rows = RowRule::contraction,
           .pack = pack_matmul}};
}

}  // namespace graphrun::ops
