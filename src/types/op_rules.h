// op_rules.h: the rule of each op: constraints on the types and parameters of its steps in a Program.
// Contract: a step that satisfies its op's rule reads and writes within its operands, whatever values they contain.
// Precondition: extents are >= 0 and no type has more than kMaxElements elements.
// Out of scope: results of ops (graph/ops, kernels) and buffer placement (program_check.cpp).
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
  const Params& params;  // must be of the kind in the op's traits
};

// Describes the rule violation; empty if the step is valid.
std::string fault_of(Op op, std::span<const TensorType> inputs, const TensorType& output, const Params& params);

}  // namespace graphrun
