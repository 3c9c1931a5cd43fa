// expression_text.cpp: from terms to canonical text: unique spacing and parentheses, every attribute by name, including
// defaults.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/library/layers.h"

namespace graphrun::expression {
namespace {

const Operator& operator_of(std::string_view op) {
  return *std::find_if(std::begin(kOperators), std::end(kOperators), [&](const Operator& o) { return o.op == op; });
}

std::string number_text(double value) {
  return value == 0 && std::signbit(value) ? "-0.0" : fmt::format("{}", value);  // "-0" would be an integer
}

std::string quoted(std::string_view word) {
  const char mark = word.find('\'') == std::string_view::npos ? '\'' : '"';
  return fmt::format("{}{}{}", mark, word, mark);
}

// Formats the value of an attribute in the expression grammar.
struct ToText {
  const GraphBuilder::Impl& graph;
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return number_text(v); }
  std::string operator()(const std::string& v) const {
    return is_name(v) && !graph.constants.contains(v) ? v : quoted(v);
  }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    if (values.empty()) return "[]";
    if (values.size() == 1) return (*this)(values[0]);
    std::string text;
    for (const T& value : values) text += (text.empty() ? "[" : ", ") + (*this)(value);
    return text + "]";
  }
};

// Text of a default that needs a special form: "none" for no axes, and "" (left out) for an integer that a double
// cannot represent, such as the default end of a slice.
std::optional<std::string> default_text(const ir::AttrDef& def) {
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&def.fallback); list && list->empty()) return "none";
  const auto* integer = std::get_if<std::int64_t>(&def.fallback);
  if (integer && std::abs(static_cast<double>(*integer)) >= 0x1p53) return "";
  return std::nullopt;
}

struct Written {
  std::string text;
  int level = kPrimary;
};

class Writer {
 public:
  Writer(GraphBuilder::Impl& graph, const Expression& expression, Attributes which)
      : graph_(graph), expression_(expression), which_(which), literals_(literals(graph, expression)) {}

  // Bottom-up, moving each text into its parent: a sum may have thousands of terms.
  std::string run() {
    for (const Term& term : expression_.terms) written_.push_back(term.literal ? Written{} : write(term));
    return std::move(written_.back().text);
  }

 private:
  Written write(const Term& term) {
    switch (term.kind) {
      case Term::Kind::number:
        return {number_text(term.number)};
      case Term::Kind::name:
        return {term.word};
      case Term::Kind::text:
        return {quoted(term.word)};
      case Term::Kind::list:
        return {joined("[", term.operands) + "]"};
      case Term::Kind::call:
        return {call(term)};
      case Term::Kind::unary: {
        const Operator& own = operator_of(term.word);
        const std::string sign = own.sign == "not" ? "not " : std::string(own.sign);
        return {sign + taken(term.operands[0], own.level), own.level};
      }
      case Term::Kind::binary:
        return binary(term);
    }
    return {};
  }

  Written binary(const Term& term) {
    const Operator& own = operator_of(term.word);
    int left = own.level, right = own.level + 1;                // left-associative
    if (own.level == kCompare) left = right;                    // comparisons do not chain
    if (own.level == kPower) left = kPrimary, right = kNegate;  // right-associative, and the exponent may be signed
    std::string text = taken(term.operands[0], left);
    text += own.level == kPower ? std::string(own.sign) : fmt::format(" {} ", own.sign);
    text += taken(term.operands[1], right);
    return {std::move(text), own.level};
  }

  // Moves out an operand's text, in parentheses if it binds less tightly than `level`.
  std::string taken(TermId id, int level) {
    Written& operand = written_[id];
    return operand.level < level ? "(" + operand.text + ")" : std::move(operand.text);
  }

  std::string joined(std::string text, const std::vector<TermId>& operands) {
    const std::size_t begin = text.size();
    for (const TermId operand : operands) {
      if (text.size() > begin) text += ", ";
      text += written_[operand].text;
    }
    return text;
  }

  std::string call(const Term& term) {
    std::string text = joined(term.word + "(", term.operands);
    const Callable* callable = find_callable(term.word);
    AttrList given;
    for (const Argument& argument : term.attributes) {
      const std::optional<AttrValue>& value = literals_[argument.value];
      if (value) given.emplace_back(argument.key, *value);
    }
    // Defaults of a layer may depend on other attributes, so only the given ones are printed.
    if (find_layer(term.word)) {
      for (const ir::AttrDef& def : callable->attributes) {
        for (const auto& [name, value] : given)
          if (name == def.name)
            text += fmt::format(", {}={}", name, std::visit(ToText{graph_}, ir::coerce(def, value)));
      }
    } else if (callable) {
      text += attributes_text(graph_, callable->attributes, given, which_);
    }
    return text + ")";
  }

  GraphBuilder::Impl& graph_;
  const Expression& expression_;
  Attributes which_;
  const std::vector<std::optional<AttrValue>> literals_;  // indexed by term
  std::vector<Written> written_;
};

}  // namespace

std::string attributes_text(const GraphBuilder::Impl& graph, const ir::AttrSchema& schema, const AttrList& given,
                            Attributes which) {
  std::string text;
  const AttrList values = ir::Attrs(schema, given).list();
  for (std::size_t i = 0; i < schema.size(); ++i) {
    const ir::AttrDef& def = schema[i];
    const AttrValue& value = values[i].second;
    const bool is_default = !def.required && value == def.fallback;
    if (is_default && which == Attributes::changed) continue;
    const std::optional<std::string> nothing = is_default ? default_text(def) : std::nullopt;
    if (nothing && nothing->empty()) continue;
    text += fmt::format(", {}={}", def.name, nothing ? *nothing : std::visit(ToText{graph}, value));
  }
  return text;
}

std::string text(GraphBuilder::Impl& graph, const Expression& expression, Attributes which) {
  const std::string value = Writer(graph, expression, which).run();
  return expression.name.empty() ? value : fmt::format("{} = {}", expression.name, value);
}

}  // namespace graphrun::expression
