#include "graph/frontend/library/functions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace graphrun {
namespace {

std::vector<double> to_reals(const std::vector<std::int64_t>& integers) {
  std::vector<double> reals;
  for (const std::int64_t i : integers) reals.push_back(static_cast<double>(i));
  return reals;
}

// Nothing when the given value cannot stand for the wanted kind.
std::optional<AttrValue> converted(const AttrValue& wanted, const AttrValue& given) {
  if (wanted.index() == given.index()) return given;
  const auto* integer = std::get_if<std::int64_t>(&given);
  const auto* real = std::get_if<double>(&given);
  const auto* integers = std::get_if<std::vector<std::int64_t>>(&given);
  if (std::holds_alternative<double>(wanted) && integer) return static_cast<double>(*integer);
  if (std::holds_alternative<std::vector<std::int64_t>>(wanted) && integer) return std::vector<std::int64_t>{*integer};
  if (std::holds_alternative<std::vector<double>>(wanted)) {
    if (integer) return std::vector<double>{static_cast<double>(*integer)};
    if (real) return std::vector<double>{*real};
    if (integers) return to_reals(*integers);
  }
  return std::nullopt;
}

bool within(const ir::AttrDef& wanted, double value) {
  return !(wanted.low && value < *wanted.low) && !(wanted.high && value > *wanted.high);
}

}  // namespace

std::optional<Function> find_function(std::string_view name) {
  for (const Composed& f : composed()) {
    if (f.name == name) return Function{f.name, &f.operands, &f.attrs, &f, false};
  }
  const OpDef* op = find_op_def(name);
  if (op == nullptr || op->internal) return std::nullopt;
  return Function{op->name(), &op->operands, &op->attrs, nullptr, op->variadic};
}

std::vector<std::string> function_names() {
  std::vector<std::string> names = op_names();
  for (const Composed& f : composed()) {
    if (std::find(names.begin(), names.end(), f.name) == names.end()) names.emplace_back(f.name);
  }
  return names;
}

std::string wrong_count(const Function& function, std::size_t got) {
  const std::size_t wanted = function.operands->size();
  if (wanted == got || (function.variadic && got > wanted)) return {};
  return fmt::format("{} takes {} operand{} ({}), got {}", function.name, wanted, wanted == 1 ? "" : "s",
                     fmt::join(*function.operands, ", "), got);
}

std::vector<std::string> names_of(const ir::AttrSchema& schema) {
  std::vector<std::string> names;
  for (const ir::AttrDef& def : schema) names.emplace_back(def.name);
  return names;
}

Error unknown_function(std::string_view name) {
  const std::string near = nearest_name(name, function_names());
  return Error(ErrorKind::input, "function.unknown", fmt::format("there is no function named {}", name),
               near.empty() ? "" : fmt::format("did you mean {}?", near));
}

const ir::AttrDef* find_attr(const ir::AttrSchema& schema, std::string_view name) {
  // NumPy says axis for one and for several: both words are understood.
  const auto is_axis = [](std::string_view word) { return word == "axis" || word == "axes"; };
  const auto found = std::find_if(schema.begin(), schema.end(), [&](const ir::AttrDef& def) {
    return def.name == name || (is_axis(def.name) && is_axis(name));
  });
  return found == schema.end() ? nullptr : &*found;
}

std::string expected(const ir::AttrDef& wanted) {
  static constexpr std::string_view kKinds[] = {"true or false", "an integer",         "a number",
                                                "a word",        "a list of integers", "a list of numbers"};
  std::string text(kKinds[wanted.fallback.index()]);
  if (!wanted.one_of.empty()) text = fmt::format("one of {}", fmt::join(wanted.one_of, ", "));
  if (wanted.low && wanted.high) return fmt::format("{} from {} to {}", text, *wanted.low, *wanted.high);
  if (wanted.low) return fmt::format("{} >= {}", text, *wanted.low);
  if (wanted.high) return fmt::format("{} <= {}", text, *wanted.high);
  return text;
}

AttrValue coerce(const ir::AttrDef& wanted, const AttrValue& given) {
  const std::optional<AttrValue> value = converted(wanted.fallback, given);
  bool fits = value.has_value();
  std::string hint;
  if (fits) {
    if (const auto* integer = std::get_if<std::int64_t>(&*value)) fits = within(wanted, static_cast<double>(*integer));
    if (const auto* real = std::get_if<double>(&*value)) fits = within(wanted, *real);
    if (const auto* word = std::get_if<std::string>(&*value); word && !wanted.one_of.empty()) {
      fits = std::find(wanted.one_of.begin(), wanted.one_of.end(), *word) != wanted.one_of.end();
      const std::string near = nearest_name(*word, {wanted.one_of.begin(), wanted.one_of.end()});
      if (!fits && !near.empty()) hint = fmt::format("did you mean {}?", near);
    }
  }
  if (!fits) {
    const auto* word = std::get_if<std::string>(&given);
    const std::string got = word ? fmt::format("\"{}\"", *word) : ir::to_string(given);
    throw AttrError(std::string(wanted.name), "attribute.value",
                    fmt::format("{} must be {}, got {}", wanted.name, expected(wanted), got), hint);
  }
  return *value;
}

ir::NodeId call(NodeFactory& make, const Function& function, std::vector<ir::NodeId> operands, AttrList attrs) {
  if (std::string message = wrong_count(function, operands.size()); !message.empty()) {
    throw Error(ErrorKind::input, "function.operands", std::move(message));
  }
  for (auto& [name, value] : attrs) {
    if (const ir::AttrDef* wanted = find_attr(*function.attrs, name)) {
      name = wanted->name;
      value = coerce(*wanted, value);
    }
  }
  if (!function.composed) return make.add(function.name, std::move(operands), attrs);
  return function.composed->build(make, operands, ir::Attrs(*function.attrs, attrs));
}

ir::NodeId call(NodeFactory& make, std::string_view name, std::vector<ir::NodeId> operands, AttrList attrs) {
  const std::optional<Function> function = find_function(name);
  if (!function) throw unknown_function(name);
  return call(make, *function, std::move(operands), std::move(attrs));
}

}  // namespace graphrun
