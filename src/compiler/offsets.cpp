#include "compiler/offsets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/checked.h"
#include "compiler/packing/block.h"
#include "compiler/packing/tight.h"

namespace graphrun::plan {
namespace {

// Sizes are padded to `alignment`, so that all offsets are multiples of it; `alignments` cause no padding.
std::vector<Block> blocks_of(std::span<const Interval> intervals, Bytes alignment, std::span<const Bytes> alignments) {
  std::vector<Block> blocks;
  blocks.reserve(intervals.size());
  Bytes sum = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const Interval& interval = intervals[i];
    if (interval.first > interval.last)
      throw std::logic_error(fmt::format("pack: interval {} ends before it begins", i));
    if (interval.size == 0) continue;
    const Bytes padded = round_up(interval.size, alignment);
    const Bytes own = alignments.empty() ? 1 : alignments[i];
    if (padded < interval.size || __builtin_add_overflow(sum, padded, &sum) ||
        __builtin_add_overflow(sum, own - 1, &sum) || sum >> 63 != 0)
      throw std::logic_error("pack: the sizes add up to more than 63 bits");
    blocks.push_back({padded, interval.first, interval.last, static_cast<Index>(i), own});
  }
  return blocks;
}

// Splits blocks into groups by time, recursively: where no block is live across a moment, the two sides are
// independent. A block that is live as long as its whole group goes under the rest, which may then split further. A
// training step, whose activations nest, often dissolves completely.
class Packer {
 public:
  Packer(std::size_t intervals, const Effort& effort)
      : goal_(effort.enough), greedy_(effort.greedy, &effort.stop), search_(effort.search, &effort.stop) {
    packing_.offsets.resize(intervals);
  }

  Packing run(std::vector<Block> blocks) {
    std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.first < b.first; });
    packing_.lower_bound = peak(blocks);
    const std::uint64_t steps = search_.left();
    const Level level = pack_level(blocks, 0);
    packing_.steps = steps - search_.left();
    packing_.total = level.total;
    packing_.proven = std::max(level.proven, packing_.lower_bound);
    return std::move(packing_);
  }

 private:
  struct Level {
    Bytes total;   // end of the highest block
    Bytes proven;  // proven lower bound of total
  };

  // Requires blocks sorted by first use.
  Level pack_level(std::span<Block> blocks, Bytes base) {
    // Each of thousands of nested live ranges is a level: beyond a depth that fits any stack, they are solved directly.
    constexpr int kMaxDepth = 2000;
    if (depth_ == kMaxDepth) return solve_at(blocks, base);
    ++depth_;
    Level level{base, base};
    std::size_t begin = 0;
    while (begin < blocks.size()) {
      std::size_t end = begin;
      std::uint32_t last = blocks[begin].last;
      while (end < blocks.size() && blocks[end].first <= last) last = std::max(last, blocks[end++].last);
      const Level group = pack_group(blocks.subspan(begin, end - begin), last, base);
      level = {std::max(level.total, group.total), std::max(level.proven, group.proven)};
      begin = end;
    }
    --depth_;
    return level;
  }

  Level pack_group(std::span<Block> blocks, std::uint32_t last, Bytes base) {
    const std::uint32_t first = blocks.front().first;
    const auto middle = std::stable_partition(blocks.begin(), blocks.end(),
                                              [&](const Block& b) { return b.first == first && b.last == last; });
    const std::span<Block> whole(blocks.begin(), middle), rest(middle, blocks.end());
    if (whole.empty() || !can_lie_under(whole, rest)) return solve_at(blocks, base);

    for (const Block& b : whole) {
      packing_.offsets[b.id] = base;
      base += b.size;
    }
    return pack_level(rest, base);
  }

  // Whether no byte is lost to alignment.
  static bool can_lie_under(std::span<const Block> whole, std::span<const Block> rest) {
    Bytes most = 1;
    for (const std::span<const Block>& blocks : {whole, rest}) {
      for (const Block& b : blocks) most = std::lcm(most, b.alignment);
    }
    return std::all_of(whole.begin(), whole.end(), [&](const Block& b) { return b.size % most == 0; });
  }

  Level solve_at(std::span<const Block> blocks, Bytes base) {
    const TightPacking tight = pack_tightly(blocks, goal_ > base ? goal_ - base : 0, greedy_, search_);
    for (std::size_t i = 0; i < blocks.size(); ++i) packing_.offsets[blocks[i].id] = base + tight.solution.offsets[i];
    return {base + tight.solution.total, base + tight.proven};
  }

  Packing packing_;
  Bytes goal_;
  Meter greedy_, search_;
  int depth_ = 0;
};

}  // namespace

Packing pack(std::span<const Interval> intervals, std::uint64_t alignment, const Effort& effort) {
  return Packer(intervals.size(), effort).run(blocks_of(intervals, alignment, {}));
}

Packing pack_each(std::span<const Interval> intervals, std::span<const std::uint64_t> alignments,
                  const Effort& effort) {
  return Packer(intervals.size(), effort).run(blocks_of(intervals, 1, alignments));
}

}  // namespace graphrun::plan
