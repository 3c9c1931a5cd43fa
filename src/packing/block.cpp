#include "packing/block.h"

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

std::vector<Block> in_sections(std::span<const Block> blocks) {
  std::vector<std::pair<std::uint32_t, bool>> events;  // time, whether it is an end: ends sort after begins
  for (const Block& b : blocks) {
    events.emplace_back(b.first, false);
    events.emplace_back(b.last, true);
  }
  std::sort(events.begin(), events.end());
  std::vector<std::uint32_t> begins;
  bool has_ended = true;
  for (const auto& [time, is_end] : events) {
    if (!is_end && has_ended) begins.push_back(time);
    has_ended = is_end;
  }
  std::vector<Block> cut(blocks.begin(), blocks.end());
  for (Block& b : cut) {
    for (std::uint32_t* time : {&b.first, &b.last})
      *time = static_cast<std::uint32_t>(std::upper_bound(begins.begin(), begins.end(), *time) - begins.begin()) - 1;
  }
  return cut;
}

}  // namespace graphrun::plan
