// scalar_loops.h: the table of an instruction set, and its elementwise loops by their op.
// Contract: pure look-ups; null for an op that is not of the kind.
#pragma once

#include "graphrun/op.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/simd/isa.h"

namespace graphrun::cpu {

const IsaTable& isa_table(Isa isa);

#define GRAPHRUN_OP(name, ...) Op::name,
inline constexpr Op kUnaryOps[] = {GRAPHRUN_UNARY_OPS(GRAPHRUN_OP)};
inline constexpr Op kBinaryOps[] = {GRAPHRUN_BINARY_OPS(GRAPHRUN_OP)};
inline constexpr Op kCompareOps[] = {GRAPHRUN_COMPARE_OPS(GRAPHRUN_OP)};
#undef GRAPHRUN_OP

// A table has the order of the list, and so have the numbers of its ops.
template <class Loop, std::size_t kCount>
Loop loop_of(const Loop* table, const Op (&ops)[kCount], Op op) {
  const auto i = static_cast<std::size_t>(op) - static_cast<std::size_t>(ops[0]);
  return i < kCount ? table[i] : nullptr;
}
inline UnaryFn unary_loop(const IsaTable& table, Op op) {
  return loop_of(table.unary, kUnaryOps, op);
}
inline BinaryFn<float> binary_loop(const IsaTable& table, Op op) {
  return loop_of(table.binary, kBinaryOps, op);
}
inline BinaryFn<std::uint8_t> compare_loop(const IsaTable& table, Op op) {
  return loop_of(table.compare, kCompareOps, op);
}

}  // namespace graphrun::cpu
