// class_range.h: an input whose values number classes or the rows of a table, or are probabilities of classes, and the
// check of its values.
// Contract: throws Error (kind input, code data.value) for the first value that is out of range: row, column, value and
// how many there are. Leaves to others: which inputs those are (graph/frontend/step/class_numbers.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graphrun/tensor.h"

namespace graphrun {

// Rounding that targets are allowed: of a probability, and of the sum over the classes of a row.
inline constexpr double kProbabilityTolerance = 1e-6, kSumTolerance = 0.01;

struct ClassRange {
  enum class Kind : std::uint8_t {
    numbers,
    probabilities,
    distributions
  };  // the last: they sum to 1 along the last axis
  std::string input;
  std::vector<std::pair<std::int64_t, std::int64_t>> part;  // of a sample, [begin, end) along each axis
  std::int64_t count = 0;
  std::string_view noun;  // "class", "index"
  std::string user;       // for messages: "'loss' (softmax_cross_entropy)"
  Kind kind = Kind::numbers;
};

// `where` begins the message: "input 'y' of train". `row` is what the tensor's row is called there; null: its number.
void check_classes(const ClassRange& range, const HostTensor& tensor, const std::string& where,
                   const std::function<std::int64_t(std::int64_t)>& row = nullptr);

}  // namespace graphrun
