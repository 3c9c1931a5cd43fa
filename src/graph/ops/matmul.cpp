// matmul.cpp: matrix product with optional transposes; leading dimensions broadcast as in NumPy. Solutions of systems.
#include "graph/ops/make.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"

namespace graphrun::ops {
namespace {

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

Params pack_matmul(const OpCall& call) {
  return MatmulParams{call.attrs.boolean("transpose_a"), call.attrs.boolean("transpose_b")};
}

}  // namespace

std::vector<OpDef> matmul() {
  return {
      {.op = Op::matmul,
       .doc = "a @ b; the flags first transpose the last two axes of an operand; leading axes broadcast",
       .operands = {"a", "b"},
       .attrs = {{"transpose_a", false, "transpose a first"}, {"transpose_b", false, "transpose b first"}},
       .grad = grad_matmul,
       .rows = RowRule::contraction,
       .pack = pack_matmul},
      {.op = family_op::solve_spd,
       .doc = "x of (A + shift I) x = b by Cholesky, from the upper triangle of A; all NaN if a pivot is not positive",
       .operands = {"A", "b", "shift"},
       .no_gradient = "a gradient of the solution is not supported",
       .rows = RowRule::scalar,
       .agreement = Agreement::residual}};
}

}  // namespace graphrun::ops
