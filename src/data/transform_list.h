// transform_list.h: the list of transforms of an input or a column, as the model file has it: names and arguments.
// Contract: every mistake is reported at its place; a list that was read has only steps that can follow each other.
// Messages, the schema and the reference page follow from transform_docs().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "data/categories.h"
#include "data/sources.h"
#include "graphrun/types.h"

namespace graphrun::data {

// In the order of transform_docs().
enum class Transform : std::uint8_t {
  standardize,
  minmax,
  robust,
  log,
  log1p,
  scale,
  flatten,
  one_hot,
  classes,
  class_weight
};

struct TransformDoc {
  std::string_view name, doc;
  std::string_view argument = {};  // what its value is; empty: it has none
  bool is_optional = false;        // the argument
};
std::span<const TransformDoc> transform_docs();

struct TransformStep {
  Transform kind;
  double scale = 1;          // scale: the factor
  std::int64_t classes = 0;  // one_hot of integers; 0: of words
  ClassStep words = {};      // one_hot of words, classes, class_weight

  bool is_of_words() const { return (kind == Transform::one_hot && classes == 0) || kind > Transform::one_hot; }
  bool is_fitted() const { return kind <= Transform::robust; }
  bool is_numeric() const { return kind <= Transform::scale; }
};

// `name` and `dtype` are those of the input; a column is f64.
std::vector<TransformStep> read_transforms(json::Reader& reader, const json::Ref& list, const std::string& name,
                                           DType dtype);

std::string names_of_steps(std::span<const TransformStep> steps);  // "log,standardize"

}  // namespace graphrun::data
