#include "base/class_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

// Whether element `i` of a sample of that shape is in range.part.
bool is_in(const ClassRange& range, const Shape& sample, std::int64_t i) {
  const std::vector<std::int64_t> at = index_of(sample, static_cast<std::size_t>(i));
  return std::equal(at.begin(), at.end(), range.part.begin(),
                    [](std::int64_t index, const auto& part) { return index >= part.first && index < part.second; });
}

std::string hint_for(const ClassRange& range, double value) {
  if (std::isnan(value)) return "leave such rows out or put numbers in their place";
  if (value == -1) return "labels of -1 and 1 become 0 and 1 by a formula: (y + 1) / 2, in the data or in the loss";
  if (value > 1 && value == std::floor(value) && range.kind == ClassRange::Kind::probabilities)
    return "class numbers 0, 1, 2, ... need an output for each class, softmax_cross_entropy and an i32 target";
  return "a target that the graph computes from the data is not checked";
}

template <class T>
void check_probabilities(const ClassRange& range, std::span<const T> values, const Shape& sample,
                         const std::function<std::string(std::int64_t, std::int64_t)>& place) {
  const std::int64_t width = sample.elements();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    if (value >= -kProbabilityTolerance && value <= 1 + kProbabilityTolerance) continue;
    const std::int64_t row = static_cast<std::int64_t>(i) / width, column = static_cast<std::int64_t>(i) % width;
    if (!is_in(range, sample, column)) continue;
    throw Error(ErrorKind::input, "data.value",
                fmt::format("{}: {} is not a probability from 0 to 1, which the target of {} must be",
                            place(row, column), values[i], range.user),
                hint_for(range, value));
  }
  if (range.kind != ClassRange::Kind::distributions || sample.rank() == 0) return;
  const auto classes = static_cast<std::size_t>(sample[sample.rank() - 1]);
  const auto [begin, end] = range.part.back();
  for (std::size_t i = 0; i < values.size(); i += classes) {
    double sum = 0;
    for (std::int64_t c = begin; c < end; ++c) sum += static_cast<double>(values[i + static_cast<std::size_t>(c)]);
    if (sum == 0 && range.accepts_none) continue;
    if (std::abs(sum - 1) <= kSumTolerance + kProbabilityTolerance) continue;
    const std::int64_t row = static_cast<std::int64_t>(i) / width,
                       column = static_cast<std::int64_t>(i) % width + begin;
    if (!is_in(range, sample, column)) continue;
    if (end - begin == 1)
      throw Error(
          ErrorKind::input, "data.value",
          fmt::format("{}: {:.6g} is not 1, and the single class of {} must be", place(row, column), sum, range.user),
          "for a target of one column, use sigmoid_cross_entropy in the loss");
    throw Error(ErrorKind::input, "data.value",
                fmt::format("{}: the {} values from there on sum to {:.6g}, not to 1: the target of {} is one-hot, or "
                            "the probability of each class",
                            place(row, column), end - begin, sum, range.user),
                "sigmoid_cross_entropy takes several labels in a row, or none");
  }
}

}  // namespace

void check_classes(const ClassRange& range, const HostTensor& tensor, const std::string& where,
                   const std::function<std::int64_t(std::int64_t)>& row) {
  const Shape sample(tensor.shape().dims().subspan(1));
  if (tensor.shape().elements() == 0) return;
  const std::int64_t width = sample.elements();
  const auto place = [&](std::int64_t r, std::int64_t column) {
    return fmt::format("{}: row {}{}", where, row ? row(r) : r, width > 1 ? fmt::format(", column {}", column) : "");
  };
  if (range.kind != ClassRange::Kind::numbers) {
    return with_elements(tensor, [&](auto values) { check_probabilities(range, values, sample, place); });
  }
  const std::span<const std::int32_t> values = tensor.elements<std::int32_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0 && values[i] < range.count) continue;
    const std::int64_t r = static_cast<std::int64_t>(i) / width, column = static_cast<std::int64_t>(i) % width;
    if (!is_in(range, sample, column)) continue;
    throw Error(ErrorKind::input, "data.value",
                fmt::format("{}: {} is not a valid {} from 0 to {}: {} has {}", place(r, column), values[i], range.noun,
                            range.count - 1, range.user, range.count));
  }
}

}  // namespace graphrun
