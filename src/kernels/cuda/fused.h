// fused.h: the source of one kernel for several chains of elementwise steps: each value is computed once, in a
// register, and only those that are asked for are stored.
// Contract: the text is a pure function of the chains (ops, attributes, types, which operands are aligned), compiles
// under NVRTC with kFusedOptions beside kScalarOpsSource, and gives the bits of elementwise.cuh. Operands are pointers
// in the kernel's one parameter, numbered by FusedOperand::pointer.
// Leaves to others: which steps are fused (executors/cuda/grouping.h), compiling and launching.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/params.h"
#include "graphrun/types.h"
#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

bool can_fuse(Op op);

struct FusedOperand {
  TensorType type;
  int value = -1;        // the chain's value of this number, or
  int pointer = -1;      // memory
  bool aligned = false;  // to 16 bytes
};
struct FusedStep {
  Op op;
  Params params;
  std::vector<FusedOperand> in;
  FusedOperand out;     // pointer -1: not stored
  bool scalar = false;  // one number for all elements, from numbers; not stored
  int row_count = -1;   // a pointer; -1: the batch is full
};
struct FusedChain {
  std::uint64_t elements = 0;
  std::vector<FusedStep> steps;
};

struct FusedKernel {
  std::string source;  // of `extern "C" __global__ void NAME(Pointers)`, without includes
  Grid grid;
  std::uint32_t threads = 0;
};
FusedKernel fuse(std::string_view name, std::span<const FusedChain> chains, std::size_t pointers,
                 const Machine& machine);

// What precedes the kernels of a module.
std::string fused_prelude();
// scalar_ops.h, as text, and the name under which the prelude includes it.
extern const char* const kScalarOpsSource;
inline constexpr const char* kScalarOpsName = "kernels/scalar_ops.h";

}  // namespace graphrun::cuda
