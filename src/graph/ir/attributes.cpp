#include "graph/ir/attributes.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "graphrun/error.h"

namespace graphrun::ir {
namespace {

std::string_view kind_name(const AttrValue& value) {
  static constexpr std::string_view kNames[] = {"true or false", "an integer",         "a number",
                                                "a string",      "a list of integers", "a list of numbers"};
  return kNames[value.index()];
}

// The value as the schema's kind, or nothing when it does not convert. Only integer to real is a conversion.
std::optional<AttrValue> as_kind_of(const AttrValue& wanted, const AttrValue& given) {
  if (wanted.index() == given.index()) return given;
  if (std::holds_alternative<double>(wanted) && std::holds_alternative<std::int64_t>(given)) {
    return static_cast<double>(std::get<std::int64_t>(given));
  }
  if (std::holds_alternative<std::vector<double>>(wanted) && std::holds_alternative<std::vector<std::int64_t>>(given)) {
    const auto& integers = std::get<std::vector<std::int64_t>>(given);
    return std::vector<double>(integers.begin(), integers.end());
  }
  return std::nullopt;
}

[[noreturn]] void fail(std::string code, std::string message, std::string hint = {}) {
  throw Error(ErrorKind::input, std::move(code), std::move(message), std::move(hint));
}

void check_bounds(const AttrDef& def, const AttrValue& value) {
  double number = 0;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    number = static_cast<double>(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    number = *real;
    if (!std::isfinite(number)) fail("attribute.range", fmt::format("'{}' must be finite, got {}", def.name, number));
    if (std::isinf(static_cast<float>(number))) {
      fail("attribute.range", fmt::format("'{}' must be a number of f32, got {}", def.name, number));
    }
  } else if (const auto* word = std::get_if<std::string>(&value)) {
    if (def.one_of.empty()) return;
    std::vector<std::string> allowed(def.one_of.begin(), def.one_of.end());
    for (const std::string& candidate : allowed) {
      if (candidate == *word) return;
    }
    const std::string near = nearest_name(*word, allowed);
    fail("attribute.value", fmt::format("'{}' must be one of {}, got '{}'", def.name, fmt::join(allowed, ", "), *word),
         near.empty() ? "" : fmt::format("did you mean '{}'?", near));
  } else {
    return;
  }
  if (def.low && number < *def.low) {
    fail("attribute.range", fmt::format("'{}' must be >= {}, got {}", def.name, *def.low, number));
  }
  if (def.high && number > *def.high) {
    fail("attribute.range", fmt::format("'{}' must be <= {}, got {}", def.name, *def.high, number));
  }
}

}  // namespace

Attrs::Attrs(const AttrSchema& schema, const AttrList& given) : schema_(&schema) {
  for (const auto& [name, value] : given) {
    bool known = false;
    for (const AttrDef& def : schema) known = known || def.name == name;
    if (known) continue;
    std::vector<std::string> names;
    for (const AttrDef& def : schema) names.emplace_back(def.name);
    const std::string near = nearest_name(name, names);
    std::string hint;
    if (!near.empty()) {
      hint = fmt::format("did you mean '{}'?", near);
    } else if (!names.empty()) {
      hint = fmt::format("attributes: {}", fmt::join(names, ", "));
    }
    fail("attribute.unknown", fmt::format("unknown attribute '{}'", name), std::move(hint));
  }
  values_.reserve(schema.size());
  for (const AttrDef& def : schema) {
    const AttrValue* found = nullptr;
    for (const auto& [name, value] : given) {
      if (name == def.name) found = &value;
    }
    if (found == nullptr) {
      if (def.required) {
        fail("attribute.missing", fmt::format("attribute '{}' ({}) is missing", def.name, kind_name(def.fallback)));
      }
      values_.push_back(def.fallback);
      continue;
    }
    std::optional<AttrValue> value = as_kind_of(def.fallback, *found);
    if (!value) {
      fail("attribute.kind",
           fmt::format("'{}' must be {}, got {}", def.name, kind_name(def.fallback), kind_name(*found)));
    }
    check_bounds(def, *value);
    values_.push_back(std::move(*value));
  }
}

template <class T>
const T& Attrs::get(std::string_view name) const {
  if (schema_ != nullptr) {
    for (std::size_t i = 0; i < schema_->size(); ++i) {
      if ((*schema_)[i].name == name) return std::get<T>(values_[i]);
    }
  }
  throw std::logic_error(fmt::format("no attribute '{}' in the schema", name));
}
template const bool& Attrs::get<bool>(std::string_view) const;
template const std::int64_t& Attrs::get<std::int64_t>(std::string_view) const;
template const double& Attrs::get<double>(std::string_view) const;
template const std::string& Attrs::get<std::string>(std::string_view) const;
template const std::vector<std::int64_t>& Attrs::get<std::vector<std::int64_t>>(std::string_view) const;
template const std::vector<double>& Attrs::get<std::vector<double>>(std::string_view) const;

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
  struct Printer {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(const std::vector<std::int64_t>& v) const { return fmt::format("[{}]", fmt::join(v, ", ")); }
    std::string operator()(const std::vector<double>& v) const { return fmt::format("[{}]", fmt::join(v, ", ")); }
  };
  return std::visit(Printer{}, value);
}

}  // namespace graphrun::ir
