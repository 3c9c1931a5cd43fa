// assignment.cpp: "assign(m, 0.9 * m + 0.1 * x)": the only graph entry without a value.
#include <algorithm>

#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/library/callables.h"

namespace graphrun::expression {

bool assigns_state(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t\n\r"), text.size());
  text.remove_prefix(first);
  if (!text.starts_with(assign_call().name)) return false;
  text.remove_prefix(assign_call().name.size());
  const std::size_t next = text.find_first_not_of(" \t\n\r");
  return next != std::string_view::npos && text[next] == '(';
}

StateAssignment state_assignment(GraphBuilder::Impl& graph, const Expression& parsed) {
  const Term& call = parsed.terms.back();
  if (call.kind != Term::Kind::call || call.word != assign_call().name) {
    throw ExpressionError(call.at, "assign.alone", "assign(…) gives no value: it stands alone in an entry");
  }
  if (std::string message = wrong_count(assign_call(), call.operands.size()); !message.empty()) {
    throw ExpressionError(call.at, "function.operands", std::move(message));
  }
  const Term& state = parsed.terms[call.operands[0]];
  if (state.kind != Term::Kind::name) {
    throw ExpressionError(state.begin, "assign.state", "the first operand of assign is the name of a state");
  }
  StateAssignment found{.state = state.word, .at = state.begin, .value = parsed, .after = false};
  found.value.terms.resize(call.operands[1] + std::size_t{1});  // drops the attributes, which follow
  const std::vector<std::optional<AttrValue>> values = literals(graph, parsed);
  for (const Argument& argument : call.attributes) {
    const ir::AttrDef* def = ir::find_attr(assign_call().attributes, argument.key);
    if (def == nullptr) {
      throw ExpressionError(argument.at, "attribute.unknown", "assign has no attribute " + argument.key,
                            "its attribute: " + std::string(assign_call().attributes.front().name));
    }
    if (!values[argument.value]) continue;
    try {
      found.after = std::get<bool>(ir::coerce(*def, *values[argument.value]));
    } catch (const Error& error) {
      throw ExpressionError(parsed.terms[argument.value].begin, error);
    }
  }
  return found;
}

}  // namespace graphrun::expression
