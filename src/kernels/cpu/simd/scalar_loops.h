// scalar_loops.h: the table of an instruction set, and its elementwise loops by op.
// Contract: pure look-ups. Leaves to others: loops for dtypes other than f32 (batch/families.h).
#pragma once

#include <initializer_list>

#include "graphrun/scalar_op.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/simd/isa.h"

namespace graphrun::cpu {

const IsaTable& isa_table(Isa isa);

// Loop for f32; null if the op has none. Loops and scalar op numbers both follow the order of scalar_op_list.h.
inline ElementFn scalar_loop(const IsaTable& table, Op op) {
  const int i = static_cast<int>(op) - static_cast<int>(Op::add);
  return i >= 0 && i < static_cast<int>(scalar_op::Place::end) ? table.elementwise[i] : nullptr;
}

// Writes out(n) from operands with n elements (column 1) or one (column 0).
inline void apply(ElementFn loop, void* out, std::int64_t n, std::initializer_list<Operand> in) {
  loop(out, 1, n, in.begin(), 0, 0);
}

}  // namespace graphrun::cpu
