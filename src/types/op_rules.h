// op_rules.h: what a step of a Program must look like, by its op: a table with one row an op.
// Contract: a step that keeps its row reads and writes within its operands, whatever they hold; find_op_rule() is null
// for what is no op. The extents of the types were checked before: none negative, kMaxElements at most.
// Leaves to others: what an op computes (graph/ops, kernels), where operands lie (program_check.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "graphrun/params.h"
#include "graphrun/types.h"

namespace graphrun {

struct StepTypes {
  std::span<const TensorType> inputs;
  const TensorType& output;
  const Params& params;  // the alternative that the rule asks for
};

// Where the output may lie over an operand.
enum class Overlay : std::uint8_t {
  none,   // nowhere
  reuse,  // exactly over an operand of the output's own type
  state,  // it is operand 0
};

struct OpRule {
  std::string_view op;
  // Dtypes of operands and output, "FF>F". F: one float dtype for all; T: one dtype for all; A: any; S: f32; I: i32;
  // B: bool; U: u64, and one element; L: the float of F, or i32. The last operand before + may come more than once.
  std::string_view dtypes;
  std::size_t params;  // index in Params
  Overlay overlay;
  std::string (*fault)(const StepTypes&);  // of shapes, rows and the range of parameters: what is wrong, or ""
};

std::span<const OpRule> op_rules();
const OpRule* find_op_rule(std::string_view op);

// What is wrong with the step, or "".
std::string fault_of(const OpRule& rule, std::span<const TensorType> inputs, const TensorType& output,
                     const Params& params);

}  // namespace graphrun
