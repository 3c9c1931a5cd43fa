// functions.h: what a model may call by name: ops of the registry and functions composed of them, seen alike.
// Contract: find_function() finds composed functions first. call() checks the operand count and the attributes and
// throws Error, or AttrError when one attribute is at fault. Leaves to others: which functions there are (composed.h,
// ops/op_def.h), and how calls are written (expression.h, model_file.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/frontend/library/composed.h"
#include "graph/ops/op_def.h"

namespace graphrun {

struct Function {
  std::string_view name;
  const std::vector<std::string_view>* operands = nullptr;
  const ir::AttrSchema* attrs = nullptr;
  const Composed* composed = nullptr;  // null: the op of that name
  bool variadic = false;               // the last operand may come any number of times, at least once
};

std::optional<Function> find_function(std::string_view name);
std::vector<std::string> function_names();
ir::NodeId call(NodeFactory& make, const Function& function, std::vector<ir::NodeId> operands, AttrList attrs);
ir::NodeId call(NodeFactory& make, std::string_view name, std::vector<ir::NodeId> operands, AttrList attrs);

// "" or a sentence: "sub takes 2 operands (a, b), got 1".
std::string wrong_count(const Function& function, std::size_t got);
Error unknown_function(std::string_view name);
std::vector<std::string> names_of(const ir::AttrSchema& schema);

// A mistake in the attribute of that name, so that the caller can point at it.
class AttrError : public Error {
 public:
  AttrError(std::string name, std::string code, std::string message, std::string hint = {})
      : Error(ErrorKind::input, std::move(code), std::move(message), std::move(hint)), attribute(std::move(name)) {}
  std::string attribute;
};

// The value as the schema wants it: an integer may stand for a real, and one number for a list of one. Throws AttrError
// that says what was expected.
AttrValue coerce(const ir::AttrDef& wanted, const AttrValue& given);
std::string expected(const ir::AttrDef& wanted);  // "an integer >= 1"
const ir::AttrDef* find_attr(const ir::AttrSchema& schema, std::string_view name);

}  // namespace graphrun
