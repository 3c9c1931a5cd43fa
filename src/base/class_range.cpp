#include "base/class_range.h"

#include <fmt/format.h>

#include "graphrun/error.h"

namespace graphrun {
namespace {

// Whether element `index` of a sample is in the part, `sample` being its extents.
bool is_in(const ClassRange& range, std::span<const std::int64_t> sample, std::int64_t index) {
  for (std::size_t axis = sample.size(); axis-- > 0;) {
    const std::int64_t at = index % sample[axis];
    index /= sample[axis];
    if (at < range.part[axis].first || at >= range.part[axis].second) return false;
  }
  return true;
}

}  // namespace

void check_classes(const ClassRange& range, const HostTensor& tensor, const std::string& where,
                   const std::function<std::int64_t(std::int64_t)>& row) {
  const std::span<const std::int32_t> values = tensor.elements<std::int32_t>();
  const std::span<const std::int64_t> sample = tensor.shape().dims().subspan(1);
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
