// elementwise.h: selects the loop of an elementwise op or a cast for given dtypes; used by kernels over whole batches,
// over tiles and by chains of steps. Contract: pure look-ups. Leaves to others: which elements (ElementLoop's callers),
// the loops of f32 (simd/isa.h).
#pragma once

#include "graphrun/params.h"
#include "kernels/cpu/simd/scalar_loops.h"

namespace graphrun::cpu {

inline constexpr int kElementInputs = 3;  // at most

struct ElementLoop {
  ElementFn run = nullptr;  // null: not supported
  float a = 0, b = 0;
  void operator()(void* out, std::int64_t rows, std::int64_t columns, const Operand* in) const {
    run(out, rows, columns, in, a, b);
  }
};

ElementLoop element_loop(const IsaTable& table, Op op, const Params& params, DType first_input, DType output);

}  // namespace graphrun::cpu
