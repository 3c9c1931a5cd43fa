// bound_step.h: a step with its kernel and addresses: what is left to do is the call.
// Contract: run() allocates nothing. A small elementwise step without rows (an optimizer has many) goes straight to its
// loop: the same loop that its kernel would find, and so the same bits.
#pragma once

#include <cstdint>

#include "graphrun/kernel.h"
#include "kernels/cpu/batch/elementwise.h"

namespace graphrun {

struct BoundStep {
  KernelFn kernel = nullptr;
  KernelArgs args;

  // Of an elementwise step whose operands have the elements of the result, or one each (column 0).
  cpu::ElementLoop loop;
  cpu::Operand in[cpu::kElementInputs];
  std::int64_t elements = 0;  // of a small one, whose loop is called at once; else 0

  // Looks for the loop of an elementwise step; `kernel` and `args` are set.
  void find_loop(Op op, Isa isa);

  void run() const {
    if (elements > 0) return loop(args.out, 1, elements, in);
    kernel(args);
  }
};

}  // namespace graphrun
