// Checks the results of pack.h. Shares no code with the packer.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

#include "packing/pack.h"

namespace graphrun::plan {

std::string validate(std::span<const Interval> intervals, std::span<const std::uint64_t> offsets, std::uint64_t total,
                     std::uint64_t alignment) {
  if (offsets.size() != intervals.size())
    return fmt::format("count: {} intervals have {} offsets", intervals.size(), offsets.size());
  const auto text = [&](std::size_t i) {
    return fmt::format("interval {} (offset {}, size {}, times {} to {})", i, offsets[i], intervals[i].size,
                       intervals[i].first, intervals[i].last);
  };
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const Interval& a = intervals[i];
    if (a.first > a.last) return fmt::format("lifetime: {} ends before it begins", text(i));
    for (const std::uint64_t unit : {alignment, a.alignment})
      if (offsets[i] % unit != 0) return fmt::format("alignment: {} is not at a multiple of {}", text(i), unit);
    if (offsets[i] > total || a.size > total - offsets[i])
      return fmt::format("bounds: {} ends beyond the total of {}", text(i), total);
  }
  // Sweep over time: blocks live at the start of another are sorted by offset, so only its two neighbours can overlap.
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (intervals[i].size > 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return intervals[i].first; });
  std::vector<std::size_t> ends = order;
  std::ranges::stable_sort(ends, {}, [&](std::size_t i) { return intervals[i].last; });
  std::map<std::uint64_t, std::size_t> live;  // keyed by offset
  std::size_t ended = 0;
  for (const std::size_t i : order) {
    for (; intervals[ends[ended]].last < intervals[i].first; ++ended) live.erase(offsets[ends[ended]]);
    const auto after = live.lower_bound(offsets[i]);
    for (const auto& other : {after, after == live.begin() ? live.end() : std::prev(after)}) {
      if (other == live.end()) continue;
      const auto [a, b] = std::minmax(i, other->second);
      if (offsets[a] + intervals[a].size <= offsets[b] || offsets[b] + intervals[b].size <= offsets[a]) continue;
      return fmt::format("overlap: {} and {} share bytes while both live", text(a), text(b));
    }
    live.emplace(offsets[i], i);
  }
  return {};
}

}  // namespace graphrun::plan
