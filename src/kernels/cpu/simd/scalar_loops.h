// scalar_loops.h: the table of an instruction set, and its elementwise loops by their op.
// Contract: pure look-ups. Leaves to others: loops of other dtypes than f32 (batch/elementwise.h).
#pragma once

#include <initializer_list>

#include "graphrun/op.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/simd/isa.h"

namespace graphrun::cpu {

const IsaTable& isa_table(Isa isa);

// Of f32; null for an op that is not of the list. A table has the order of the list, and so have the numbers of its
// ops.
inline ElementFn scalar_loop(const IsaTable& table, Op op) {
#define GRAPHRUN_OP(name, ...) Op::name,
  constexpr Op kScalarOps[] = {GRAPHRUN_UNARY_OPS(GRAPHRUN_OP) GRAPHRUN_BINARY_OPS(GRAPHRUN_OP)
                                   GRAPHRUN_COMPARE_OPS(GRAPHRUN_OP)};
#undef GRAPHRUN_OP
  const auto i = static_cast<std::size_t>(op) - static_cast<std::size_t>(kScalarOps[0]);
  return i < std::size(kScalarOps) ? table.elementwise[i] : nullptr;
}

// out(n) of operands that have n elements (column 1) or one (column 0).
inline void apply(ElementFn loop, void* out, std::int64_t n, std::initializer_list<Operand> in) {
  loop(out, 1, n, in.begin(), 0, 0);
}
inline void apply(const IsaTable& table, Op op, void* out, std::int64_t n, std::initializer_list<Operand> in) {
  apply(scalar_loop(table, op), out, n, in);
}

}  // namespace graphrun::cpu
