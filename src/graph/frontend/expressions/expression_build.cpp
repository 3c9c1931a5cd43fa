// expression_build.cpp: from terms to nodes: name lookup, constant folding, attributes,
// assignments of states.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/layers.h"
#include "graph/ops/make.h"
#include "graphrun/scalar_op_list.h"
#include "graphrun/variant.h"

namespace graphrun::expression {
namespace {

using ir::NodeId;

struct Number {
  double value = 0;
  bool integer = false;
};
struct None {};  // "axis=none": same as leaving the attribute out
using Item = Variant<NodeId, Number, AttrValue, None>;

bool is_integral(double value) {
  return value == std::floor(value) && std::abs(value) <= 9007199254740992.0;
}

// Whether the first parenthesis matches the last.
bool spans_whole(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return false;
  }
  return true;
}

// "known: x, y, W and 3 more", in definition order.
std::string known_names(const GraphBuilder::Impl& graph) {
  constexpr std::size_t kShown = 8;
  std::string text;
  std::size_t shown = 0;
  for (ir::NodeId id = 0; id < graph.graph.size() && shown < kShown; ++id) {
    if (!graph.named.contains(id)) continue;
    text += (shown++ == 0 ? "known: " : ", ") + graph.graph[id].name;
  }
  const std::size_t more = graph.named.size() - shown;
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

// Value of true, false or none; nullopt for other words.
std::optional<Item> word_value(std::string_view word) {
  if (word == "true" || word == "True") return AttrValue(true);
  if (word == "false" || word == "False") return AttrValue(false);
  if (word == "none" || word == "None") return None{};
  return std::nullopt;
}

Error unknown_name(const Scope& scope, std::string_view name, bool suggest) {
  std::string hint;
  if (word_value(name)) {
    hint = "true, false and none are values of attributes only";
  } else if (const auto later = scope.later.find(name); later != scope.later.end()) {
    hint = fmt::format("it is defined further down, at {}", later->second);
  } else if (find_callable(name)) {
    hint = fmt::format("{} is {}: {}(…)", name, find_layer(name) ? "a layer" : "a function", name);
  } else if (suggest) {
    std::vector<std::string> names;
    for (const auto& entry : scope.graph.names) names.push_back(entry.first);
    for (const auto& entry : scope.graph.constants) names.push_back(entry.first);
    names.insert(names.end(), scope.broken.begin(), scope.broken.end());
    hint = did_you_mean(name, names);
    if (hint.empty() && !scope.graph.names.empty()) hint = known_names(scope.graph);
  }
  return Error(ErrorKind::input, "name.unknown", fmt::format("there is no value named {}", name), std::move(hint));
}

// Computes in double, by the reference column of scalar_op_list.h. A unary op ignores y. Returns nullopt if no op
// without attributes has that name.
std::optional<double> fold_scalar(std::string_view op, double x, double y) {
#define GRAPHRUN_FOLD(name, functor, ulps, result, meaning) \
  if (op == #name) return meaning;
  GRAPHRUN_PLAIN_OPS(GRAPHRUN_FOLD)
  GRAPHRUN_BINARY_OPS(GRAPHRUN_FOLD)
#undef GRAPHRUN_FOLD
  return std::nullopt;
}

class Evaluator {
 public:
  Evaluator(GraphBuilder::Impl& graph, const Expression& expression) : graph_(graph), expression_(expression) {}

  NodeId run() {
    for (const Term& term : expression_.terms) items_.push_back(evaluate(term));
    return node(static_cast<TermId>(items_.size() - 1), DType::f32);
  }

  std::vector<std::optional<AttrValue>> literals() {
    std::vector<std::optional<AttrValue>> values;
    for (const Term& t : expression_.terms) {
      items_.push_back(t.literal ? evaluate(t) : Item(None{}));
      values.push_back(attribute(static_cast<TermId>(values.size())));
    }
    return values;
  }

 private:
  const Term& term(TermId id) const { return expression_.terms[id]; }
  const Number* number(TermId id) const { return std::get_if<Number>(&items_[id]); }

  Item evaluate(const Term& t) {
    switch (t.kind) {
      case Term::Kind::number:
        return Number{t.number, t.integer};
      case Term::Kind::text:
        return AttrValue(t.word);
      case Term::Kind::name:
        return name(t);
      case Term::Kind::list:
        return list(t);
      default:
        break;
    }
    if (std::optional<Item> folded = fold_numbers(t)) return *folded;
    if (t.literal) {
      throw ExpressionError(t.at, "expression.literal",
                            "an attribute is a literal: a number, a list, true, false or a word");
    }
    try {
      return call(t);
    } catch (const ExpressionError&) {
      throw;
    } catch (const Error& error) {
      std::vector<std::string> given;
      for (const Argument& argument : t.attributes) given.push_back(argument.key);
      const std::string fault = attribute_at_fault(error, given);
      for (const Argument& argument : t.attributes) {
        if (argument.key == fault) throw ExpressionError(term(argument.value).begin, error);
      }
      throw ExpressionError(t.at, explained(t, error));
    }
  }

  Item name(const Term& t) const {
    if (const auto constant = graph_.constants.find(t.word); constant != graph_.constants.end()) {
      return Number{constant->second, is_integral(constant->second)};
    }
    if (!t.literal) return graph_.names.at(t.word);
    return word_value(t.word).value_or(AttrValue(t.word));
  }

  Item list(const Term& t) const {
    std::vector<std::int64_t> integers;
    std::vector<double> reals;
    for (const TermId item : t.operands) {
      const Number* n = number(item);
      if (!n) throw ExpressionError(term(item).begin, "expression.list", "the items of a list are numbers");
      if (n->integer) integers.push_back(static_cast<std::int64_t>(n->value));
      reals.push_back(n->value);
    }
    if (integers.size() == reals.size()) return AttrValue(std::move(integers));
    return AttrValue(std::move(reals));
  }

  std::optional<Item> fold_numbers(const Term& t) const {
    if (t.operands.empty() || t.operands.size() > 2 || !t.attributes.empty()) return std::nullopt;
    bool integer = t.word != "div";
    for (const TermId operand : t.operands) {
      if (!number(operand)) return std::nullopt;
      integer = integer && number(operand)->integer;
    }
    const double a = number(t.operands[0])->value;
    const std::optional<double> value = fold_scalar(t.word, a, number(t.operands.back())->value);
    if (!value) return std::nullopt;
    if (!std::isfinite(*value)) {
      throw ExpressionError(t.at, "expression.number", fmt::format("{} is not a finite number", text_of(t)));
    }
    return Number{*value, integer && is_integral(*value)};
  }

  std::string_view text_of(const Term& t) const {
    return std::string_view(expression_.text).substr(t.begin, t.end - t.begin);
  }

  // A number takes the dtype of the other operands.
  NodeId node(TermId id, DType others) {
    const Item& item = items_[id];
    if (const NodeId* value = std::get_if<NodeId>(&item)) return *value;
    if (const Number* value = std::get_if<Number>(&item)) {
      const bool keeps = is_float(others) || (others == DType::i32 && is_integral(value->value));
      return graph_.builder.scalar(value->value, keeps ? others : DType::f32);
    }
    if (!term(id).operands.empty() && term(id).kind == Term::Kind::list) {
      std::vector<double> reals;
      for (const TermId i : term(id).operands) reals.push_back(number(i)->value);
      const TensorType type{is_float(others) ? others : DType::f32, {static_cast<std::int64_t>(reals.size())}, 0};
      return make::source(graph_.builder, "constant", type, {{"values", std::move(reals)}}).id;
    }
    throw ExpressionError(term(id).begin, "expression.operand", "expected a value of the graph or a number");
  }

  std::vector<NodeId> nodes(const std::vector<TermId>& ids) {
    DType others = DType::f32;
    for (const TermId id : ids) {
      const NodeId* value = std::get_if<NodeId>(&items_[id]);
      if (!value) continue;
      others = graph_.builder.type(*value).dtype;
      if (others != DType::boolean) break;  // in where(condition, x, 0), 0 takes the dtype of x
    }
    operands_.clear();
    for (const TermId id : ids) operands_.push_back(node(id, others));
    return operands_;
  }

  NodeId call(const Term& t) {
    const bool is_square =
        t.kind == Term::Kind::binary && t.word == "pow" && number(t.operands[1]) && number(t.operands[1])->value == 2;
    if (is_square) return graph_.builder.add("square", nodes({t.operands[0]}));
    AttrList attrs;
    for (const Argument& argument : t.attributes) {
      if (std::optional<AttrValue> value = attribute(argument.value))
        attrs.emplace_back(argument.key, std::move(*value));
    }
    if (const Layer* row = find_layer(t.word)) return layer(t, *row, std::move(attrs));
    return graphrun::call(graph_.builder, t.word, nodes(t.operands), std::move(attrs));
  }

  // Parameter names start with the attribute "name" or, without it, with the assigned name.
  NodeId layer(const Term& t, const Layer& row, AttrList attrs) {
    const bool is_whole = &t == &expression_.terms.back();
    std::string name = is_whole ? expression_.name : "";
    for (const auto& [key, value] : attrs) {
      if (const auto* word = std::get_if<std::string>(&value); key == "name" && word && !word->empty()) name = *word;
    }
    std::erase_if(attrs, [](const auto& attr) { return attr.first == "name"; });
    if (name.empty()) {
      throw ExpressionError(t.at, "layer.name", fmt::format("{} needs a name for its parameters", t.word),
                            fmt::format("name = {0}(…), or within an expression {0}(…, name=h)", t.word));
    }
    const std::vector<NodeId> operands = nodes(t.operands);
    LayerOptions options = split_layer_attributes(row, attrs);
    // The caller defines the assigned name.
    if (is_whole && name == expression_.name) return build_layer(graph_, row, name, operands, std::move(options));
    return add_layer(graph_, row, name, operands, std::move(options));
  }

  std::optional<AttrValue> attribute(TermId id) const {
    if (const Number* n = number(id); n && n->integer) return static_cast<std::int64_t>(n->value);
    if (const Number* n = number(id)) return n->value;
    if (const auto* value = std::get_if<AttrValue>(&items_[id])) return *value;
    return std::nullopt;  // "none": a literal is never a node
  }

  Error explained(const Term& t, const Error& error) const {
    std::vector<OperandNote> notes;
    for (std::size_t i = 0; i < operands_.size() && i < t.operands.size(); ++i) {
      const Term& operand = term(t.operands[i]);
      std::string_view text = text_of(operand);
      // with_notes() adds parentheses itself.
      if (operand.kind != Term::Kind::name && text.starts_with('(') && text.ends_with(')') && spans_whole(text))
        text = text.substr(1, text.size() - 2);
      notes.push_back({operands_[i], std::string(text)});
    }
    return with_notes(graph_, notes, error);
  }

  GraphBuilder::Impl& graph_;
  const Expression& expression_;
  std::vector<Item> items_;       // indexed by term
  std::vector<NodeId> operands_;  // operands of the current call or operation
};

void check_call(const Scope& scope, const Term& t, Findings& findings) {
  const Callable* function = find_callable(t.word);
  if (function == &assign_call())
    return findings.add({t.at, "assign.alone", "assign(…) gives no value: it stands alone in an entry"});
  if (!scope.layers && find_layer(t.word))
    return findings.add({t.at, "layer.place", fmt::format("{} adds parameters, which are not allowed here", t.word),
                         "layers belong in \"graph\""});
  if (function == nullptr && (scope.graph.names.contains(t.word) || scope.graph.constants.contains(t.word)))
    return findings.add({t.at, "function.unknown", fmt::format("{} is a value, not a function", t.word),
                         "a product is written with *"});
  if (function == nullptr) return findings.add({t.at, unknown("function", t.word, callable_names())});
  if (std::string message = wrong_count(*function, t.operands.size()); !message.empty()) {
    const bool surplus = t.operands.size() > function->operands.size() && !function->attributes.empty();
    findings.add({t.at, "function.operands", std::move(message),
                  surplus ? fmt::format("attributes are given by name: {}=…", function->attributes.front().name) : ""});
  }
  for (const Argument& argument : t.attributes) {
    if (ir::find_attr(function->attributes, argument.key)) continue;
    std::string hint = did_you_mean(argument.key, names_of(function->attributes));
    if (hint.empty() && !function->attributes.empty())
      hint = fmt::format("its attributes: {}", fmt::join(names_of(function->attributes), ", "));
    findings.add({argument.at, "attribute.unknown", fmt::format("{} has no attribute {}", t.word, argument.key),
                  std::move(hint)});
  }
}

}  // namespace

Findings check(const Scope& scope, const Expression& expression) {
  Findings findings;
  for (const Term& t : expression.terms) {
    if (t.kind == Term::Kind::call) check_call(scope, t, findings);
    if (t.kind != Term::Kind::name || t.literal || scope.graph.constants.contains(t.word)) continue;
    if (excused(scope, t.word)) {
      findings.broken = true;
    } else if (!scope.graph.names.contains(t.word)) {
      findings.add({t.at, unknown_name(scope, t.word, scope.suggest && !findings.full())});
    }
  }
  return findings;
}

bool excused(const Scope& scope, std::string_view name) {
  if (scope.graph.names.contains(name)) return false;
  return scope.broken.contains(name) || (scope.nameless && !scope.later.contains(name));
}

NodeId resolve(const Scope& scope, std::string_view name) {
  const auto found = scope.graph.names.find(name);
  if (found == scope.graph.names.end()) throw unknown_name(scope, name, scope.suggest);
  return found->second;
}

NodeId build(GraphBuilder::Impl& graph, const Expression& expression) {
  return Evaluator(graph, expression).run();
}

std::vector<std::optional<AttrValue>> literals(GraphBuilder::Impl& graph, const Expression& expression) {
  return Evaluator(graph, expression).literals();
}

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
