// bound_step.h: a step with its kernel and addresses: what is left to do is the call.
// Contract: run() allocates nothing. A small elementwise step without rows (an optimizer has many) goes straight to its
// loop: the same loop that its kernel would find, and so the same bits.
#pragma once

#include <cstdint>

#include "graphrun/kernel.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/simd/isa.h"

namespace graphrun {

struct BoundStep {
  KernelFn kernel = nullptr;
  KernelArgs args;

  // Of an elementwise step whose operands have the elements of the result, or one each (column 0).
  struct Loops {
    cpu::UnaryFn unary = nullptr;
    cpu::BinaryFn<float> binary = nullptr;
    std::int64_t column[2] = {};
    float a = 0, b = 0;
  };
  Loops loops;

  // Of a small one: its loop, called at once.
  cpu::UnaryFn unary = nullptr;
  cpu::BinaryFn<float> binary = nullptr;
  std::int64_t elements = 0;
  cpu::Strided<float> x, y;

  // Looks for the loops of an elementwise step; `kernel` and `args` are set.
  void find_loop(Op op, Isa isa);

  void run() const {
    if (binary != nullptr) return binary(args.output<float>(), 1, elements, x, y);
    if (unary != nullptr) return unary(args.output<float>(), x.data, elements, 0, 0);
    kernel(args);
  }
};

}  // namespace graphrun
