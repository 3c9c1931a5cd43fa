// op_rules.h: the rule of each op: the type of its output, and errors in its operands and parameters.
// Contract: used for nodes of a graph and for steps of a Program. A step without a fault reads and writes within its
// operands, whatever values they contain. In a graph, dimension 0 of rows may be the batch, a symbol: rules compare it
// and pass it on, and do not compute with it.
// Precondition: extents of a Program are >= 0 and no type has more than kMaxElements elements.
// Out of scope: results of ops (graph/ops, kernels) and buffer placement (program_check.cpp).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "graphrun/op_traits.h"
#include "graphrun/params.h"
#include "graphrun/types.h"

namespace graphrun {

struct Operands {
  std::span<const TensorType> inputs;
  std::span<const std::string> names = {};  // "x", "W1", for messages; empty: "operand 1"

  // Throws Error (kind input).
  [[noreturn]] void fail(std::string code, std::string message, std::string hint = {}) const;
  std::string name(std::size_t i) const;
  std::string operand(std::size_t i) const;  // "x f32(batch, 6)"
};

struct InferContext : Operands {
  const Params& params;        // has the kind in the op's traits
  const TensorType& declared;  // has the parts of the output's type that operands and parameters leave open
};

// Type of the output. Precondition: the number of operands is that of the op's traits. Throws Error (kind input).
TensorType infer_type(Op op, const InferContext& context);

// Fails unless operand 0 has the axis and it is not the batch; `why` ends that message.
void require_axis(const Operands& context, std::int64_t axis, std::string_view why);
inline constexpr std::string_view kNotCut = ", it cannot be cut or extended";

}  // namespace graphrun
