// bound_step.h: a step with its kernel and addresses, ready to be called.
// Contract: run() allocates nothing. A small elementwise step without rows (an optimizer has many) calls its loop
// directly: the same loop that its kernel would select, so results are bitwise identical.
#pragma once

#include <cstdint>

#include "kernels/cpu/batch/families.h"
#include "kernels/kernel.h"

namespace graphrun {

struct BoundStep {
  KernelFn kernel = nullptr;
  KernelArgs args;

  // Loop of an elementwise step whose operands have as many elements as the result, or one (column 0).
  cpu::ElementLoop loop;
  cpu::Operand in[cpu::kElementInputs];
  std::int64_t elements = 0;  // elements of a small step, whose loop is called directly; else 0

  // Finds the loop of an elementwise step; `kernel` and `args` must be set.
  void find_loop(Op op, Isa isa);

  void run() const {
    if (elements > 0) return loop(args.out, 1, elements, in);
    kernel(args);
  }
};

}  // namespace graphrun
