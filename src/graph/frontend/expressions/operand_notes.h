// operand_notes.h: what a shape error says about its operands: where each was defined, or what it is in the text.
// Contract: errors that are not about shapes or dtypes pass unchanged. Leaves to others: both shapes (ops/infer.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/frontend/builder_impl.h"
#include "graphrun/error.h"

namespace graphrun {

struct OperandNote {
  ir::NodeId node = ir::kNoNode;
  std::string text;  // of an operand without a name: "x @ W"
};

// Which of the given attributes the error speaks of, or one that was not given; "" when none.
std::string attribute_at_fault(const Error& error, const std::vector<std::string>& given);

Error with_notes(const GraphBuilder::Impl& graph, std::span<const OperandNote> operands, const Error& error);

}  // namespace graphrun
