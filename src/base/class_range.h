// class_range.h: checks inputs whose values are class numbers, row indices of a table, or class probabilities.
// Contract: throws Error (kind input, code data.value) for the first value out of range, with row, column, value and
// the number of classes. Not here: selection of these inputs (graph/frontend/step/class_numbers.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graphrun/tensor.h"

namespace graphrun {

// Rounding tolerance of targets: for a probability, and for the sum over the classes of a row.
inline constexpr double kProbabilityTolerance = 1e-6, kSumTolerance = 0.01;

struct ClassRange {
  enum class Kind : std::uint8_t {
    numbers,
    probabilities,
    distributions
  };  // probabilities sum to 1 along the last axis
  std::string input;
  std::vector<std::pair<std::int64_t, std::int64_t>> part;  // range within a sample: [begin, end) along each axis
  std::int64_t count = 0;
  std::string_view noun;  // "class", "index"
  std::string user;       // for messages: "'loss' (softmax_cross_entropy)"
  Kind kind = Kind::numbers;
  bool accepts_none = false;  // a row of no class: all its values are 0
};

// `where` is a message prefix: "input 'y' of train". `row` maps tensor rows to user rows; null: identity.
void check_classes(const ClassRange& range, const HostTensor& tensor, const std::string& where,
                   const std::function<std::int64_t(std::int64_t)>& row = nullptr);

}  // namespace graphrun
