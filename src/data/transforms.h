// transforms.h: what is done to an input's values between the file and the tensor, in listed order.
// Contract: "standardize" is fitted on train, in double and two passes; the other splits reuse its numbers. What is
// done to numbers is one affine record a column, stored = (original - shift) / scale, and it is done by that record:
// numbers that come with weights give the same bits as numbers that were fitted. Leaves to others: which rows a split
// has (dataset.cpp).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/array.h"
#include "data/dataset.h"
#include "data/sources.h"
#include "graphrun/tensor.h"

namespace graphrun::data {

struct Column {
  ArrayPtr array;
  Rows rows;
};

std::span<const Doc> transform_docs();

class Pipeline {
 public:
  // Reads the list of one input, for instance ["standardize", {"scale": 0.5}, "flatten", {"one_hot": 10}].
  void read(json::Reader& reader, const json::Place& list, const InputDecl& input);

  // Fits to train and gives the record when numbers were changed; a constant column adds to `warnings`. Throws Error.
  std::optional<Standardization> fit(const Column& train, const std::string& input, std::vector<std::string>& warnings);

  // In place of fit(): numbers that come with weights, null when they have none for the input. Throws Error when they
  // cannot be those of this list.
  std::optional<Standardization> adopt(const Standardization* given, const InputDecl& input);

  // In place of fit() where values are not read: numbers that are fitted have stand-ins, no two of them equal, so that
  // a plan has the steps and the bytes that it has with the data.
  std::optional<Standardization> unfitted(const InputDecl& input) const;

  bool makes_classes() const { return has(Kind::one_hot); }

  // Throws Error when the result does not fit the input. Looks at no value.
  void check(const Column& column, const std::string& split, const InputDecl& input) const;

  // After fit() or adopt(); checks.
  HostTensor apply(const Column& column, const std::string& split, const InputDecl& input) const;

 private:
  enum class Kind { standardize, scale, flatten, one_hot };
  struct Step {
    Kind kind;
    double scale = 1;          // scale: the factor
    std::int64_t classes = 0;  // one_hot
  };

  static std::optional<Step> read_step(json::Reader& reader, const json::Place& at);
  bool has(Kind kind) const;
  Standardization known_record(const InputDecl& input) const;
  std::optional<Standardization> visible_record() const;

  std::vector<Step> steps_;
  std::optional<Standardization> record_;  // what the numeric steps come to
};

}  // namespace graphrun::data
