#include "compiler/packing/block.h"

#include <algorithm>
#include <utility>

namespace graphrun::plan {

Bytes peak(std::span<const Block> blocks) {
  std::vector<std::pair<std::uint64_t, std::int64_t>> changes;  // changes of the live bytes; ends sort before begins
  for (const Block& b : blocks) {
    changes.emplace_back(b.first, static_cast<std::int64_t>(b.size));
    changes.emplace_back(std::uint64_t{b.last} + 1, -static_cast<std::int64_t>(b.size));
  }
  std::sort(changes.begin(), changes.end());
  Bytes live = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, live += static_cast<Bytes>(change));
  return most;
}

Sections::Sections(std::span<const Block> blocks) {
  std::vector<std::pair<std::uint32_t, bool>> events;  // time, whether it is an end: ends sort after begins
  for (const Block& b : blocks) {
    events.emplace_back(b.first, false);
    events.emplace_back(b.last, true);
  }
  std::sort(events.begin(), events.end());
  bool has_ended = true;
  for (const auto& [time, is_end] : events) {
    if (!is_end && has_ended) begins_.push_back(time);
    has_ended = is_end;
  }
}

std::uint32_t Sections::at(std::uint32_t time) const {
  return static_cast<std::uint32_t>(std::upper_bound(begins_.begin(), begins_.end(), time) - begins_.begin()) - 1;
}

}  // namespace graphrun::plan
