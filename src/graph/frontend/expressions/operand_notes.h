// operand_notes.h: notes on the operands of a shape error: where each is defined, or its text in the expression.
// Contract: errors that do not concern shapes or dtypes pass unchanged. ops/infer.h reports the shapes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/frontend/builder_impl.h"
#include "graphrun/error.h"

namespace graphrun {

struct OperandNote {
  ir::NodeId node = ir::kNoNode;
  std::string text;  // for an operand without a name: "x @ W"
};

// The attribute that the error refers to, in the user's spelling if it was given; "" if there is none.
std::string attribute_at_fault(const Error& error, const std::vector<std::string>& given);

Error with_notes(const GraphBuilder::Impl& graph, std::span<const OperandNote> operands, const Error& error);

}  // namespace graphrun
