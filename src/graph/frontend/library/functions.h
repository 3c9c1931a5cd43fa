// functions.h: what a model may call by name: ops with a kernel of their own, and functions made of other ops.
// Contract: to add one of the latter is one row of the table and one build function; shapes, gradients and every
// executor follow from the parts. It comes before an op of its name. call() checks the operand count and the attributes
// and throws Error, or AttrError when one attribute is at fault. Leaves to others: which ops there are (ops/op_def.h),
// how calls are written (expression.h, model_file.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/frontend/library/entry.h"
#include "graph/ops/op_def.h"

namespace graphrun {

struct Function : Callable {
  Var (*build)(std::span<const Var> operands, const ir::Attrs& attrs) = nullptr;  // null: the op of that name
};

const std::vector<Function>& functions();  // in listing order
inline const Function* find_function(std::string_view name) {
  return find_row(functions(), name);
}
// One operand whose values it computes with: moving them, comparing them or adding them up makes no activation.
bool is_activation(const Function& function);

ir::NodeId call(NodeFactory& make, const Function& function, std::span<const ir::NodeId> operands, AttrList attrs = {});
inline ir::NodeId call(NodeFactory& make, std::string_view name, std::span<const ir::NodeId> operands,
                       AttrList attrs = {}) {
  return call(make, row_named("function", functions(), name), operands, std::move(attrs));
}

}  // namespace graphrun
