#include "data/transforms/transform_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "base/names_of.h"
#include "graphrun/error.h"

namespace graphrun::data {

std::span<const TransformDoc> transform_docs() {
  static constexpr TransformDoc docs[] = {
      {"standardize", "scales each column to mean 0 and standard deviation 1; fitted on train"},
      {"minmax", "scales each column to minimum 0 and maximum 1; fitted on train"},
      {"robust", "scales each column to median 0 and interquartile range 1; fitted on train"},
      {"log", "takes the natural logarithm, for x > 0; must be the first transform that changes numbers"},
      {"log1p", "computes log(1 + x), for x >= 0; must be the first transform that changes numbers"},
      {"scale", "multiplies by a number", "a number"},
      {"flatten", "merges all axes except the batch into one"},
      {"one_hot", "encodes a category, or an integer from 0 to k-1, as a row of zeros with a single 1",
       "k, a list of categories, or {\"categories\": [...], \"other\": true}", true},
      {"classes", "encodes a category as its class index, counted from 0",
       "a list of categories, or {\"categories\": [...], \"other\": true}", true},
      {"class_weight", "replaces a class by its weight in the loss", "\"balanced\" or weights by category"},
  };
  return docs;
}

namespace {

std::string allowed_transforms() {
  std::string allowed;
  for (const TransformDoc& doc : transform_docs()) {
    const bool is_plain = doc.argument.empty() || doc.is_optional;
    allowed += allowed.empty() ? "" : ", ";
    allowed += is_plain ? fmt::format("\"{}\"", doc.name) : fmt::format("{{\"{}\": {}}}", doc.name, doc.argument);
  }
  return allowed;
}

// Reads a category of the model file: a string, a number, or true or false as in a CSV file.
std::optional<std::string> read_category(json::Reader& reader, const json::Ref& at) {
  if (at.value->kind == json::Kind::string) return category_of(at.value->string);
  if (at.value->kind == json::Kind::boolean) return at.value->boolean ? "true" : "false";
  const std::optional<double> number = reader.number(at);
  return number ? std::optional(category_of(*number)) : std::nullopt;
}

std::vector<std::string> read_categories(json::Reader& reader, const json::Ref& list) {
  std::vector<std::string> words;
  std::unordered_set<std::string> seen;
  if (list.value->kind != json::Kind::array || list.value->items.empty()) {
    reader.report(list, "data.transform", "must be a list of categories: words or numbers");
    return words;
  }
  for (std::size_t i = 0; i < list.value->items.size(); ++i) {
    const std::optional<std::string> word = read_category(reader, list.item(i));
    if (!word) continue;
    if (!seen.insert(*word).second)
      reader.report(list.item(i), "data.transform", fmt::format("there are two categories '{}'", *word));
    words.push_back(*word);
  }
  return words;
}

// Reads [..] or {"categories": [..], "other": true}.
ClassStep read_classes(json::Reader& reader, const json::Ref& at) {
  ClassStep step;
  if (at.value->kind != json::Kind::object) {
    step.words = read_categories(reader, at);
    return step;
  }
  json::ObjectReader object(reader, at);
  if (const auto list = object.get("categories")) step.words = read_categories(reader, *list);
  step.other = object.boolean("other").value_or(false);
  object.finish();
  return step;
}

// Reads "balanced" or {"yes": 2, "no": 1}.
ClassStep read_weights(json::Reader& reader, const json::Ref& at) {
  ClassStep step;
  step.weighs = true;
  if (at.value->kind == json::Kind::string && at.value->string == "balanced") return step;
  if (at.value->kind != json::Kind::object || at.value->members.empty()) {
    reader.report(at, "data.transform",
                  "must be \"balanced\" or an object of weights by category: {\"yes\": 2, \"no\": 1}");
    return step;
  }
  for (const json::Member& member : at.value->members) {
    const json::Ref place = at.member(member);
    const std::optional<double> weight = reader.number(place);
    if (weight && *weight < 0) reader.report(place, "data.transform", "a weight must be 0 or more");
    step.words.push_back(category_of(member.key));
    step.weights.push_back(weight.value_or(1));
  }
  return step;
}

std::optional<TransformStep> read_argument(json::Reader& reader, TransformStep step, const json::Ref& value) {
  switch (step.kind) {
    case Transform::scale: {
      const std::optional<double> scale = reader.number(value);
      if (scale == 0) reader.report(value, "data.transform", "must not be 0");
      step.scale = scale.value_or(0);
      return step.scale != 0 ? std::optional(step) : std::nullopt;
    }
    case Transform::one_hot:
      if (value.value->is_number()) {
        step.classes = reader.integer(value, 1, std::numeric_limits<std::int32_t>::max()).value_or(0);
        return step.classes != 0 ? std::optional(step) : std::nullopt;
      }
      [[fallthrough]];
    case Transform::classes:
      step.words = read_classes(reader, value);
      return step;
    default:
      step.words = read_weights(reader, value);
      return step;
  }
}

std::optional<TransformStep> read_step(json::Reader& reader, const json::Ref& at) {
  const std::vector<std::string> names = names_of(transform_docs());
  const bool is_object = at.value->kind == json::Kind::object && at.value->members.size() == 1;
  if (!is_object && at.value->kind != json::Kind::string) {
    reader.report(at, "data.transform", "expected one of " + allowed_transforms());
    return std::nullopt;
  }
  const std::string name = is_object ? at.value->members.front().key : at.value->string;
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) {
    reader.report(at, "data.transform",
                  fmt::format("unknown transform '{}'; expected one of {}", name, allowed_transforms()),
                  did_you_mean(name, names));
    return std::nullopt;
  }
  const TransformDoc& doc = transform_docs()[static_cast<std::size_t>(it - names.begin())];
  if (doc.argument.empty() ? is_object : !is_object && !doc.is_optional) {
    reader.report(
        at, "data.transform",
        fmt::format("'{}' takes {} argument; expected one of {}", name, is_object ? "no" : "an", allowed_transforms()));
    return std::nullopt;
  }
  const TransformStep step{static_cast<Transform>(it - names.begin())};
  return is_object ? read_argument(reader, step, at.member(at.value->members.front())) : step;
}

// Explains why a step cannot follow the previous ones; empty if it can.
std::string misplaced(const TransformStep& step, std::span<const TransformStep> before) {
  const auto any = [&](auto is) { return std::any_of(before.begin(), before.end(), is); };
  const auto classes =
      std::find_if(before.begin(), before.end(), [](const TransformStep& s) { return s.kind >= Transform::one_hot; });
  if (classes != before.end() && step.kind != Transform::flatten)
    return fmt::format("only \"flatten\" can follow \"{}\"", names_of_steps({classes, classes + 1}));
  if (step.kind == Transform::one_hot && any([](const TransformStep& s) { return s.is_fitted(); }))
    return "classes are not standardized";
  if (step.is_of_words() && any([](const TransformStep& s) { return s.kind != Transform::flatten; }))
    return "words become classes first: only \"flatten\" may come before";
  const bool is_curve = step.kind == Transform::log || step.kind == Transform::log1p;
  if (is_curve && any([](const TransformStep& s) { return s.is_numeric(); }))
    return "a logarithm is the first step that changes numbers";
  return {};
}

}  // namespace

std::vector<TransformStep> read_transforms(json::Reader& reader, const json::Ref& list, const std::string& name,
                                           DType dtype) {
  std::vector<TransformStep> steps;
  if (list.value->kind != json::Kind::array) {
    reader.report(list, "model.type", "must be an array of transforms");
    return steps;
  }
  for (std::size_t i = 0; i < list.value->items.size(); ++i) {
    const json::Ref at = list.item(i);
    const std::optional<TransformStep> step = read_step(reader, at);
    if (!step) continue;
    const bool needs_float = step->is_numeric() || step->kind == Transform::class_weight;
    if (std::string why = misplaced(*step, steps); !why.empty())
      reader.report(at, "data.transform", std::move(why));
    else if (needs_float && !is_float(dtype))
      reader.report(at, "data.transform",
                    fmt::format("input '{}' is {}; only f32 and f64 can be scaled", name, name_of(dtype)));
    else
      steps.push_back(*step);
  }
  return steps;
}

std::string names_of_steps(std::span<const TransformStep> steps) {
  std::string names;
  for (const TransformStep& step : steps)
    names += fmt::format("{}{}", names.empty() ? "" : ",", transform_docs()[static_cast<std::size_t>(step.kind)].name);
  return names;
}

}  // namespace graphrun::data
