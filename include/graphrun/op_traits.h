// op_traits.h: the facts that planning, checks and executors look up by op, whichever ops there are.
// Contract: each op of op.h, family_op.h and scalar_op_list.h has its traits, or src/types/op_rules.cpp does not
// compile. Leaves to others: the ops themselves (op.h), so that a new one rebuilds only files that distinguish ops.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "graphrun/types.h"

namespace graphrun {

enum class CombineOp : std::uint8_t;    // program.h
enum class ParamsKind : std::uint32_t;  // params.h
struct Params;

// Storage that the output shares with an operand. Decided before planning.
enum class Overlay : std::uint8_t {
  none,
  reuse,  // may overwrite an operand of the output's own type whose live range ends here
  state,  // overwrites operand 0
  view,   // in the bytes of operand 0; no kernel runs. From OpDef::view, never in OpTraits
};

struct OpTraits {
  // Dtypes of operands and output, "FF>F". F: one float dtype for all; T: one dtype for all; A: any; S: f32; I: i32;
  // B: bool; U: u64, and one element; L: the float of F, or i32. The last operand before + may come more than once.
  // Empty: a source or a state, which needs no step.
  std::string_view dtypes = {};
  ParamsKind params = {};  // {} without attributes
  Overlay overlay = Overlay::none;
  std::optional<CombineOp> combine = {};  // how partial results over rows become one; none: they cannot
};

GRAPHRUN_API std::optional<Op> find_op(std::string_view name);
GRAPHRUN_API const OpTraits& traits_of(Op op);  // an unknown number has the traits of a source

// Returns whether element i of the result depends only on element i of the operands, after broadcasting.
GRAPHRUN_API bool is_elementwise(Op op);

// Error in the operands, the output or the parameters of a step, or "".
GRAPHRUN_API std::string step_fault(Op op, std::span<const TensorType> inputs, const TensorType& output,
                                    const Params& params);

}  // namespace graphrun
