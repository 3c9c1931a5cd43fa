// op.h: what an op is below the graph: a number, a name, and the facts that planning, checks and executors go by.
// Contract: the enumerators are those of op_list.h, and the traits of each are in a table that does not compile without
// it. Numbers change from build to build: texts and files hold names, and plug-ins are compared by the whole list.
// Headers that only carry an Op need types.h, which declares it; include this one where ops are told apart.
// Leaves to others: attributes, inference and gradients (src/graph/ops/op_def.h), what an op computes (src/kernels).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "graphrun/op_list.h"
#include "graphrun/types.h"

namespace graphrun {

enum class CombineOp : std::uint8_t;    // program.h
enum class ParamsKind : std::uint32_t;  // params.h

#define GRAPHRUN_NAME(name, ...) name,
enum class Op : std::uint16_t { GRAPHRUN_OPS(GRAPHRUN_NAME) };
#undef GRAPHRUN_NAME
#define GRAPHRUN_ONE(...) +1
inline constexpr std::size_t kOps = 0 GRAPHRUN_OPS(GRAPHRUN_ONE);
#undef GRAPHRUN_ONE

// Where the output may lie over an operand.
enum class Overlay : std::uint8_t {
  none,   // nowhere
  reuse,  // exactly over an operand of the output's own type
  state,  // it is operand 0
};

struct OpTraits {
  // Dtypes of operands and output, "FF>F". F: one float dtype for all; T: one dtype for all; A: any; S: f32; I: i32;
  // B: bool; U: u64, and one element; L: the float of F, or i32. The last operand before + may come more than once.
  // Empty: a source or a state, which is no step.
  std::string_view dtypes = {};
  ParamsKind params = {};  // of no attributes: {}
  Overlay overlay = Overlay::none;
  std::optional<CombineOp> combine = {};  // how partial results over rows become one; none: they cannot
};

GRAPHRUN_API std::optional<Op> find_op(std::string_view name);
GRAPHRUN_API const OpTraits& traits_of(Op op);  // of a number that is no op: those of a source

// What is wrong with the number of operands or a dtype of a step, or "".
GRAPHRUN_API std::string operand_fault(Op op, std::span<const TensorType> inputs, const TensorType& output);

}  // namespace graphrun
