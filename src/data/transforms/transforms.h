// transforms.h: transforms of an input or a column from file values to tensor, applied in listed order.
// Contract: statistics are fitted to train in double precision and reused by the other splits. All numeric steps reduce
// to one record per column, stored = (log(original) - shift) / scale, so numbers loaded with weights give the same bits
// as fitted ones. Not here: parsing of the list (transform_list.h), categories (categories.h), rows of a split
// (splitter.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/array.h"
#include "data/csv/categories.h"
#include "data/dataset.h"
#include "data/transforms/transform_list.h"
#include "graphrun/tensor.h"

namespace graphrun::data {

// Whether a value after the named steps (names_of_steps()) is far outside the training rows: by more than their range
// (minmax), or more than 10 standard deviations or interquartile ranges from their centre.
bool is_far(std::string_view steps, double value);

// Sample i holds `length` of the rows, from row first + i * hop on.
struct Column {
  ArrayPtr array;
  Rows rows;
  std::int64_t length = 1, hop = 1, first = 0, samples = -1;  // -1: a sample for each row

  std::int64_t count() const { return samples < 0 ? rows.count : samples; }
  std::int64_t row(std::int64_t sample, std::int64_t i = 0) const { return rows.row(first + sample * hop + i); }
};

class Pipeline {
 public:
  // Reads the list of one input, for instance ["standardize", {"scale": 0.5}, "flatten", {"one_hot": 10}].
  void read(json::Reader& reader, const json::Ref& list, const InputDecl& input);

  // Fits to train. Returns the record if numbers change; warns about a constant column. Throws Error.
  std::optional<Standardization> fit(const Column& train, const std::string& input, std::vector<std::string>& warnings);

  // Replaces fit() with numbers loaded with weights, or null if they have none for the input. Throws Error if they do
  // not match this list.
  std::optional<Standardization> adopt(const Standardization* given, const InputDecl& input);

  // Replaces fit() if values are not read. Uses distinct placeholders for fitted numbers, so that a plan has the same
  // steps and bytes as with the data.
  std::optional<Standardization> unfitted(const InputDecl& input) const;

  // First step if it maps categorical values to classes; applied to the column on reading (categories.h).
  const ClassStep* class_step() const;
  void set_classes(std::size_t count) { class_count_ = static_cast<std::int64_t>(count); }

  bool accepts_unseen(const InputDecl& input) const {
    return input.accepts_unseen && class_step() != nullptr && has(Transform::one_hot);
  }
  bool is_one_hot() const { return has(Transform::one_hot); }
  bool makes_classes() const { return has(Transform::one_hot) || class_step() != nullptr; }
  LogTransform log() const;
  // Divisor of all values of the input, if the list does nothing else with numbers (Split::codes).
  std::optional<double> divisor(const InputDecl& input) const;
  std::span<const TransformStep> steps() const { return steps_; }
  std::string names() const { return names_of_steps(steps_); }

  // Row shape after the list, or nothing while the number of classes is unknown. Throws Error.
  std::optional<Shape> result_of(const Shape& before, const std::string& where) const;

  // Throws Error if the result does not fit the input. Reads no values.
  void check(const Column& column, const std::string& split, const InputDecl& input) const;

  // Call after fit() or adopt(). Includes check().
  HostTensor apply(const Column& column, const std::string& split, const InputDecl& input) const;

 private:
  bool has(Transform kind) const;
  bool changes_numbers() const;
  Standardization known_record(const InputDecl& input) const;
  std::optional<Standardization> visible_record() const;

  std::vector<TransformStep> steps_;
  std::int64_t class_count_ = 0;           // for class_step(); 0: unknown
  std::optional<Standardization> record_;  // all numeric steps combined
};

}  // namespace graphrun::data
