// op_rules.h: what a step of a Program must look like, by its op.
// Contract: a step that keeps the rule of its op reads and writes within its operands, whatever they hold. The extents
// of the types were checked before: none negative, kMaxElements at most.
// Leaves to others: what an op computes (graph/ops, kernels), where operands lie (program_check.cpp).
#pragma once

#include <span>
#include <string>

#include "graphrun/op_traits.h"
#include "graphrun/params.h"
#include "graphrun/types.h"

namespace graphrun {

struct StepTypes {
  std::span<const TensorType> inputs;
  const TensorType& output;
  const Params& params;  // the alternative that the op's traits ask for
};

// What is wrong with the step, or "".
std::string fault_of(Op op, std::span<const TensorType> inputs, const TensorType& output, const Params& params);

}  // namespace graphrun
