// transforms.h: what is done to an input's values, or a column's, between the file and the tensor, in listed order.
// Contract: what is fitted is fitted on train, in double; the other splits reuse its numbers. What is done to numbers
// is one record a column, stored = (log(original) - shift) / scale, and it is done by that record: numbers that come
// with weights give the same bits as numbers that were fitted. Leaves to others: the list in the model file
// (transform_list.h), words (categories.h), which rows a split has (splitter.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/array.h"
#include "data/categories.h"
#include "data/dataset.h"
#include "data/transform_list.h"
#include "graphrun/tensor.h"

namespace graphrun::data {

struct Column {
  ArrayPtr array;
  Rows rows;
};

class Pipeline {
 public:
  // Reads the list of one input, for instance ["standardize", {"scale": 0.5}, "flatten", {"one_hot": 10}].
  void read(json::Reader& reader, const json::Ref& list, const InputDecl& input);

  // Fits to train and gives the record when numbers were changed; a constant column adds to `warnings`. Throws Error.
  std::optional<Standardization> fit(const Column& train, const std::string& input, std::vector<std::string>& warnings);

  // In place of fit(): numbers that come with weights, null when they have none for the input. Throws Error when they
  // cannot be those of this list.
  std::optional<Standardization> adopt(const Standardization* given, const InputDecl& input);

  // In place of fit() where values are not read: numbers that are fitted have stand-ins, no two of them equal, so that
  // a plan has the steps and the bytes that it has with the data.
  std::optional<Standardization> unfitted(const InputDecl& input) const;

  // Classes of words: the first step, which is done to a column while it is read (categories.h).
  const ClassStep* class_step() const;
  void set_classes(std::size_t count) { class_count_ = static_cast<std::int64_t>(count); }

  bool makes_classes() const { return has(Transform::one_hot) || class_step() != nullptr; }
  LogTransform log() const;
  std::string names() const { return names_of_steps(steps_); }

  // The shape of a row after the list; nothing while it is not known how many classes there are. Throws Error.
  std::optional<Shape> result_of(const Shape& before, const std::string& where) const;

  // Throws Error when the result does not fit the input. Looks at no value.
  void check(const Column& column, const std::string& split, const InputDecl& input) const;

  // After fit() or adopt(); checks.
  HostTensor apply(const Column& column, const std::string& split, const InputDecl& input) const;

 private:
  bool has(Transform kind) const;
  bool changes_numbers() const;
  Standardization known_record(const InputDecl& input) const;
  std::optional<Standardization> visible_record() const;

  std::vector<TransformStep> steps_;
  std::int64_t class_count_ = 0;           // of class_step(); 0: not known
  std::optional<Standardization> record_;  // what the numeric steps come to
};

}  // namespace graphrun::data
