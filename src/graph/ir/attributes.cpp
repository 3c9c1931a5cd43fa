#include "graph/ir/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/names_of.h"

namespace graphrun::ir {
namespace {

// nullopt if the value cannot be converted to the wanted kind.
std::optional<AttrValue> converted(const AttrValue& wanted, const AttrValue& given) {
  using Integers = std::vector<std::int64_t>;
  using Reals = std::vector<double>;
  if (wanted.index() == given.index()) return given;
  const auto* integer = std::get_if<std::int64_t>(&given);
  const auto* real = std::get_if<double>(&given);
  const auto* integers = std::get_if<Integers>(&given);
  if (std::holds_alternative<double>(wanted) && integer) return static_cast<double>(*integer);
  if (std::holds_alternative<Integers>(wanted) && integer) return Integers{*integer};
  if (std::holds_alternative<Reals>(wanted)) {
    if (integer) return Reals{static_cast<double>(*integer)};
    if (real) return Reals{*real};
    if (integers) return Reals(integers->begin(), integers->end());
  }
  return std::nullopt;
}

bool within(const AttrDef& wanted, double value) {
  if (wanted.low && (wanted.above ? value <= *wanted.low : value < *wanted.low)) return false;
  return !(wanted.high && value > *wanted.high);
}

}  // namespace

bool fits(const AttrDef& wanted, const AttrValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return within(wanted, static_cast<double>(*integer));
  if (const auto* real = std::get_if<double>(&value)) return within(wanted, *real);
  const auto* word = std::get_if<std::string>(&value);
  return word == nullptr || wanted.one_of.empty() ||
         std::find(wanted.one_of.begin(), wanted.one_of.end(), *word) != wanted.one_of.end();
}

bool is_same_attr(std::string_view a, std::string_view b) {
  const auto is_axis = [](std::string_view word) { return word == "axis" || word == "axes"; };
  return a == b || (is_axis(a) && is_axis(b));
}

const AttrDef* find_attr(const AttrSchema& schema, std::string_view name) {
  const auto found =
      std::find_if(schema.begin(), schema.end(), [&](const AttrDef& def) { return is_same_attr(def.name, name); });
  return found == schema.end() ? nullptr : &*found;
}

std::string expected(const AttrDef& wanted) {
  if (wanted.at_run_time) {
    AttrDef number = wanted;
    number.at_run_time = false;
    return expected(number) + ", or the name of a runtime hyperparameter";
  }
  static constexpr std::string_view kKinds[] = {"true or false", "an integer",         "a number",
                                                "a word",        "a list of integers", "a list of numbers"};
  std::string text(kKinds[wanted.fallback.index()]);
  if (!wanted.one_of.empty()) text = fmt::format("one of {}", fmt::join(wanted.one_of, ", "));
  if (wanted.low && wanted.high && wanted.above)
    return fmt::format("{} > {} and <= {}", text, *wanted.low, *wanted.high);
  if (wanted.low && wanted.high) return fmt::format("{} from {} to {}", text, *wanted.low, *wanted.high);
  if (wanted.low) return fmt::format("{} {} {}", text, wanted.above ? ">" : ">=", *wanted.low);
  if (wanted.high) return fmt::format("{} <= {}", text, *wanted.high);
  return text;
}

AttrValue coerce(const AttrDef& wanted, const AttrValue& given) {
  std::optional<AttrValue> value = converted(wanted.fallback, given);
  const auto* word = std::get_if<std::string>(&given);
  if (word != nullptr && wanted.at_run_time) return given;
  if (!value || !fits(wanted, *value)) {
    throw AttrError(wanted.name, "attribute.value",
                    fmt::format("{} must be {}, got {}", wanted.name, expected(wanted),
                                word ? fmt::format("\"{}\"", *word) : to_string(given)),
                    word ? did_you_mean(*word, {wanted.one_of.begin(), wanted.one_of.end()}) : "");
  }
  if (const auto* real = std::get_if<double>(&*value); real && !std::isfinite(static_cast<float>(*real))) {
    throw AttrError(
        wanted.name, "attribute.range",
        fmt::format("{} must be {}, got {}", wanted.name, std::isfinite(*real) ? "a number of f32" : "finite", *real));
  }
  return *std::move(value);
}

Attrs::Attrs(const AttrSchema& schema, const AttrList& given) : schema_(&schema) {
  for (const AttrDef& def : schema) values_.push_back(def.fallback);
  std::vector<bool> is_given(schema.size());
  for (const auto& [name, value] : given) {
    const AttrDef* def = find_attr(schema, name);
    if (def == nullptr) {
      const std::vector<std::string> names = names_of(schema);
      std::string hint = did_you_mean(name, names);
      if (hint.empty() && !names.empty()) hint = fmt::format("attributes: {}", fmt::join(names, ", "));
      throw Error(ErrorKind::input, "attribute.unknown", fmt::format("unknown attribute '{}'", name), std::move(hint));
    }
    const auto at = static_cast<std::size_t>(def - schema.data());
    values_[at] = coerce(*def, value);
    is_given[at] = true;
  }
  for (std::size_t i = 0; i < schema.size(); ++i) {
    if (!schema[i].required || is_given[i]) continue;
    throw Error(ErrorKind::input, "attribute.missing",
                fmt::format("attribute '{}' ({}) is missing", schema[i].name, expected(schema[i])));
  }
}

const AttrValue& Attrs::value(std::string_view name) const {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if ((*schema_)[i].name == name) return values_[i];
  }
  throw std::logic_error(fmt::format("no attribute '{}' in the schema", name));
}

AttrList Attrs::list() const {
  AttrList result;
  for (std::size_t i = 0; i < values_.size(); ++i) result.emplace_back((*schema_)[i].name, values_[i]);
  return result;
}

std::string Attrs::text() const {
  std::string result;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    result += fmt::format(" {}={}", (*schema_)[i].name, to_string(values_[i]));
  }
  return result;
}

std::string to_string(const AttrValue& value) {
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    std::vector<std::string> texts;
    for (const std::int64_t one : *integers) texts.push_back(extent_text(one));
    return fmt::format("[{}]", fmt::join(texts, ", "));
  }
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) return fmt::format("[{}]", fmt::join(*reals, ", "));
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  return std::get<bool>(value) ? "true" : "false";
}

}  // namespace graphrun::ir
