// transform_list.h: parses the list of transforms of an input or a column in the model file: names and arguments.
// Contract: every error is reported at its position. A list that was read contains only steps in a valid order.
// Messages, the schema and the reference page are generated from transform_docs().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.h"
#include "data/csv/categories.h"
#include "data/sources/sources.h"
#include "graphrun/types.h"

namespace graphrun::data {

// Same order as transform_docs().
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
  std::string_view argument = {};  // description of the argument; empty if it takes none
  bool is_optional = false;        // applies to the argument
};
std::span<const TransformDoc> transform_docs();

struct TransformStep {
  Transform kind;
  double scale = 1;          // factor of scale
  std::int64_t classes = 0;  // one_hot of integers; 0: one_hot of categorical values
  ClassStep words = {};      // one_hot of categorical values, classes, class_weight

  bool is_of_words() const { return (kind == Transform::one_hot && classes == 0) || kind > Transform::one_hot; }
  bool is_fitted() const { return kind <= Transform::robust; }
  bool is_numeric() const { return kind <= Transform::scale; }
};

// `name` and `dtype` are those of the input; a column is f64.
std::vector<TransformStep> read_transforms(json::Reader& reader, const json::Ref& list, const std::string& name,
                                           DType dtype);

std::string names_of_steps(std::span<const TransformStep> steps);  // "log,standardize"

}  // namespace graphrun::data
