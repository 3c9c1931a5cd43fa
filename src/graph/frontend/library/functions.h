// functions.h: the functions that a model calls by name: ops, and functions made of other ops.
// Contract: a function made of ops needs a row of the table and a build function. It takes precedence over an op of its
// name. call() checks the operand count and the attributes, and throws Error, or AttrError if one attribute is invalid.
// Defined elsewhere: the ops (ops/op_def.h), the syntax of calls (expression.h, model_file.h).
#pragma once

#include <span>
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
// Whether it computes a new value from each element of one operand: a move, comparison or sum is not an activation.
bool is_activation(const Function& function);

ir::NodeId call(ir::Builder& make, const Function& function, std::span<const ir::NodeId> operands, AttrList attrs = {});
inline ir::NodeId call(ir::Builder& make, std::string_view name, std::span<const ir::NodeId> operands,
                       AttrList attrs = {}) {
  return call(make, row_named("function", functions(), name), operands, std::move(attrs));
}

}  // namespace graphrun
