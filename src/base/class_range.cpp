#include "base/class_range.h"

#include <fmt/format.h>

#include <algorithm>

#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

// Whether element `i` of a sample of that shape is in the part.
bool is_in(const ClassRange& range, const Shape& sample, std::int64_t i) {
  const std::vector<std::int64_t> at = index_of(sample, static_cast<std::size_t>(i));
  return std::equal(at.begin(), at.end(), range.part.begin(),
                    [](std::int64_t index, const auto& part) { return index >= part.first && index < part.second; });
}

}  // namespace

void check_classes(const ClassRange& range, const HostTensor& tensor, const std::string& where,
                   const std::function<std::int64_t(std::int64_t)>& row) {
  const std::span<const std::int32_t> values = tensor.elements<std::int32_t>();
  const Shape sample(tensor.shape().dims().subspan(1));
  if (values.empty()) return;
  const std::int64_t width = static_cast<std::int64_t>(values.size()) / tensor.shape()[0];
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0 && values[i] < range.count) continue;
    const std::int64_t r = static_cast<std::int64_t>(i) / width, column = static_cast<std::int64_t>(i) % width;
    if (!is_in(range, sample, column)) continue;
    throw Error(ErrorKind::input, "data.value",
                fmt::format("{}: row {}{}: {} is no {} from 0 to {}: {} has {}", where, row ? row(r) : r,
                            width > 1 ? fmt::format(", column {}", column) : "", values[i], range.noun, range.count - 1,
                            range.user, range.count));
  }
}

}  // namespace graphrun
