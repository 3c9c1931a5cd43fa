#include "compiler/offsets.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/checked.h"

namespace graphrun::plan {
namespace {

using Bytes = std::uint64_t;
using Index = std::uint32_t;

struct Block {
  Bytes size;  // padded to the alignment, so that all offsets are multiples of it; > 0
  std::uint32_t first, last;
  Index id;  // in the caller's list
};

bool meet(const Block& a, const Block& b) {
  return a.first <= b.last && b.first <= a.last;
}

std::vector<Block> blocks_of(std::span<const Interval> intervals, Bytes alignment) {
  std::vector<Block> blocks;
  blocks.reserve(intervals.size());
  Bytes sum = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const Interval& interval = intervals[i];
    if (interval.first > interval.last)
      throw std::logic_error(fmt::format("pack: interval {} ends before it begins", i));
    if (interval.size == 0) continue;
    const Bytes padded = round_up(interval.size, alignment);
    if (padded < interval.size || __builtin_add_overflow(sum, padded, &sum))
      throw std::logic_error("pack: the sizes add up to more than 64 bits");
    blocks.push_back({padded, interval.first, interval.last, static_cast<Index>(i)});
  }
  return blocks;
}

Bytes peak(std::span<const Block> blocks) {
  std::vector<std::pair<std::uint64_t, std::int64_t>> changes;  // of the live bytes; ends come before begins
  for (const Block& b : blocks) {
    changes.emplace_back(b.first, static_cast<std::int64_t>(b.size));
    changes.emplace_back(std::uint64_t{b.last} + 1, -static_cast<std::int64_t>(b.size));
  }
  std::sort(changes.begin(), changes.end());
  Bytes live = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, live += static_cast<Bytes>(change));
  return most;
}

// Work is counted in steps of the innermost loops, never in seconds: the same problem gives the same answer anywhere.
struct Effort {
  std::uint64_t greedy = 60'000'000;
  std::uint64_t search = 40'000'000;
};

struct Solution {
  std::vector<Bytes> offsets;  // one a block of the group
  Bytes total = std::numeric_limits<Bytes>::max();
};

// Each block in turn goes to the lowest gap it fits in.
Solution place_in_order(std::span<const Block> blocks, std::span<const Index> order, std::uint64_t& steps) {
  struct Placed {
    Bytes offset, end;
    std::uint32_t first, last;
  };
  std::vector<Placed> placed;  // by offset
  placed.reserve(blocks.size());
  Solution solution{std::vector<Bytes>(blocks.size()), 0};
  for (const Index i : order) {
    const Block& block = blocks[i];
    Bytes offset = 0;
    std::size_t at = 0;
    for (; at < placed.size(); ++at) {
      const Placed& p = placed[at];
      const bool live = p.first <= block.last && block.first <= p.last;
      if (live && p.offset >= offset + block.size) break;
      if (live) offset = std::max(offset, p.end);
    }
    steps += at + 1;
    solution.offsets[i] = offset;
    solution.total = std::max(solution.total, offset + block.size);
    const auto by_offset = [](Bytes value, const Placed& p) { return value < p.offset; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset, by_offset),
                  {offset, offset + block.size, block.first, block.last});
  }
  return solution;
}

// Orders are stable sorts by falling keys; ties go by time of first use, then by the caller's order.
template <class Key>
std::vector<Index> order_by(std::span<const Block> blocks, Key key) {
  std::vector<Index> order(blocks.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return key(blocks[a]) > key(blocks[b]); });
  return order;
}

double width(const Block& b) {
  return static_cast<double>(b.last - b.first) + 1;
}
double size(const Block& b) {
  return static_cast<double>(b.size);
}
double area(const Block& b) {
  return width(b) * size(b);
}

// Every second block by time of first use, then the others: the two ends of a chain's memory in turn.
std::vector<Index> order_by_turns(std::span<const Block> blocks) {
  const std::vector<Index> in_time = order_by(blocks, [](const Block& b) { return -static_cast<double>(b.first); });
  std::vector<Index> order;
  for (std::size_t turn : {0u, 1u}) {
    for (std::size_t i = turn; i < in_time.size(); i += 2) order.push_back(in_time[i]);
  }
  return order;
}

std::vector<std::vector<Index>> greedy_orders(std::span<const Block> blocks) {
  return {order_by(blocks, size),
          order_by(blocks, area),
          order_by(blocks, width),
          order_by(blocks, [](const Block& b) { return -static_cast<double>(b.first); }),
          order_by_turns(blocks),
          order_by(blocks, [](const Block& b) { return static_cast<double>(b.last); }),
          order_by(blocks, [](const Block& b) { return -width(b); })};
}

// What sticks out above the bound goes half the way forward in the order, again and again: the blocks that are hard to
// place come to the front by themselves. Keeps the best packing met.
void improve(std::span<const Block> blocks, std::vector<Index> order, Bytes bound, std::uint64_t& pot, Solution& best) {
  Solution now = best;
  std::uint64_t since_best = 0;
  while (best.total > bound && since_best < 200) {
    const Bytes line = std::max(bound, now.total - (now.total - bound + 1) / 2);
    bool moved = false;
    for (std::size_t place = 0; place < order.size(); ++place) {
      const Index i = order[place];
      if (now.offsets[i] + blocks[i].size <= line || place == 0) continue;
      const auto from = order.begin() + static_cast<std::ptrdiff_t>(place);
      std::rotate(order.begin() + static_cast<std::ptrdiff_t>(place / 2), from, from + 1);
      moved = true;
    }
    std::uint64_t steps = 0;
    if (!moved || pot < blocks.size() * blocks.size() / 2) return;
    now = place_in_order(blocks, order, steps);
    pot -= std::min(pot, steps);
    ++since_best;
    if (now.total < best.total) {
      best = now;
      since_best = 0;
    }
  }
}

// Depth-first search over canonical packings: blocks are placed with offsets that never fall, each on top of what is
// below it. Every packing can be lowered to such a one, so an exhausted search is a proof. (The ideas are those of
// MiniMalloc, Moffitt 2023.)
class Search {
 public:
  Search(std::span<const Block> blocks, Bytes bound, Solution& best, std::uint64_t& pot)
      : blocks_(blocks), bound_(bound), best_(best), pot_(pot), neighbours_(blocks.size()), sections_(blocks.size()) {
    std::vector<std::uint32_t> times;
    for (const Block& b : blocks) times.push_back(b.first);
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    const auto section = [&](std::uint32_t time) {
      return static_cast<Index>(std::upper_bound(times.begin(), times.end(), time) - times.begin()) - 1;
    };
    waiting_.resize(times.size());
    for (Index i = 0; i < blocks.size(); ++i) {
      sections_[i] = {section(blocks[i].first), section(blocks[i].last)};
      for (Index s = sections_[i].first; s <= sections_[i].last; ++s) waiting_[s] += blocks[i].size;
      for (Index j = 0; j < blocks.size(); ++j) {
        if (j != i && meet(blocks[i], blocks[j])) neighbours_[i].push_back(j);
      }
    }
    floor_.resize(blocks.size());
    ceiling_.resize(times.size());
    offsets_.resize(blocks.size());
  }

  // True when the search ended by itself: the best solution is then optimal.
  bool run(std::span<const Index> order, std::uint64_t nodes) {
    order_.assign(order.begin(), order.end());
    rank_.resize(order.size());
    for (Index r = 0; r < order_.size(); ++r) rank_[order_[r]] = r;
    is_placed_.assign(blocks_.size(), 0);
    nodes_ = nodes;
    descend(0, 0, 0, 0);
    return nodes_ > 0 || best_.total == bound_;
  }

 private:
  // The level's first candidate is at least `level`; blocks of equal offset go in order of rank.
  void descend(std::size_t depth, Bytes level, Index rank, Bytes total) {
    if (depth == blocks_.size()) {
      if (total < best_.total) best_ = {offsets_, total};
      return;
    }
    const std::uint64_t cost = blocks_.size() + ceiling_.size();
    if (nodes_ == 0 || pot_ < cost) {
      nodes_ = 0;
      return;
    }
    --nodes_;
    pot_ -= cost;

    // Nothing can stay below a block that would fit there whole: that block comes first.
    Bytes lowest_end = std::numeric_limits<Bytes>::max();
    for (const Index i : order_) {
      if (!is_placed_[i]) lowest_end = std::min(lowest_end, std::max(floor_[i], level) + blocks_[i].size);
    }
    for (Index r = 0; r < order_.size(); ++r) {
      const Index i = order_[r];
      if (is_placed_[i]) continue;
      const Bytes offset = floor_[i];
      if (offset < level || offset >= lowest_end || (depth > 0 && offset == level && r < rank)) continue;
      if (offset + blocks_[i].size >= best_.total) continue;
      place(i, offset);
      if (has_room(offset)) descend(depth + 1, offset, r, std::max(total, offset + blocks_[i].size));
      take_back(i);
      if (nodes_ == 0 || best_.total == bound_) return;
    }
  }

  void place(Index i, Bytes offset) {
    const Block& block = blocks_[i];
    const Bytes end = offset + block.size;
    is_placed_[i] = 1;
    offsets_[i] = offset;
    for (Index s = sections_[i].first; s <= sections_[i].last; ++s) {
      undo_.push_back(ceiling_[s]);
      ceiling_[s] = end;
      waiting_[s] -= block.size;
    }
    for (const Index j : neighbours_[i]) {
      if (is_placed_[j]) continue;
      undo_.push_back(floor_[j]);
      floor_[j] = std::max(floor_[j], end);
    }
    pot_ -= std::min<std::uint64_t>(pot_, neighbours_[i].size() + ceiling_.size());
  }

  void take_back(Index i) {
    for (auto j = neighbours_[i].rbegin(); j != neighbours_[i].rend(); ++j) {
      if (is_placed_[*j]) continue;
      floor_[*j] = undo_.back();
      undo_.pop_back();
    }
    for (Index s = sections_[i].last + 1; s-- > sections_[i].first;) {
      ceiling_[s] = undo_.back();
      undo_.pop_back();
      waiting_[s] += blocks_[i].size;
    }
    is_placed_[i] = 0;
  }

  // What still waits at a time must fit over what lies there and over the present level.
  bool has_room(Bytes level) const {
    for (std::size_t s = 0; s < ceiling_.size(); ++s) {
      if (waiting_[s] > 0 && std::max(ceiling_[s], level) + waiting_[s] >= best_.total) return false;
    }
    return true;
  }

  std::span<const Block> blocks_;
  Bytes bound_;
  Solution& best_;
  std::uint64_t& pot_;
  std::vector<std::vector<Index>> neighbours_;
  struct Sections {
    Index first, last;
  };
  std::vector<Sections> sections_;  // of a block: a section is the time from one first use to the next
  std::vector<Bytes> waiting_;      // of a section: bytes not placed yet
  std::vector<Bytes> ceiling_;      // of a section: end of the highest placed block
  std::vector<Bytes> floor_;        // of a block: where it would stand on its placed neighbours
  std::vector<Bytes> offsets_;
  std::vector<Bytes> undo_;
  std::vector<char> is_placed_;
  std::vector<Index> order_, rank_;
  std::uint64_t nodes_ = 0;
};

constexpr std::size_t kMaxSearched = 512;

// A group that no moment in time divides. Offsets from 0.
Solution solve(std::span<const Block> blocks, Effort& effort) {
  const Bytes bound = peak(blocks);
  const std::vector<std::vector<Index>> orders = greedy_orders(blocks);
  Solution best;
  const std::vector<Index>* best_order = nullptr;
  for (const std::vector<Index>& order : orders) {
    std::uint64_t steps = 0;
    Solution solution = place_in_order(blocks, order, steps);
    if (solution.total < best.total) {
      best = std::move(solution);
      best_order = &order;
    }
    effort.greedy -= std::min(effort.greedy, steps);
    if (best.total == bound || effort.greedy == 0) return best;
  }
  improve(blocks, *best_order, bound, effort.greedy, best);
  if (best.total == bound) return best;
  if (blocks.size() > kMaxSearched) return best;

  // A search that begins badly seldom mends, so that several orders take turns with growing budgets. A group has to
  // leave some of the pot to those after it.
  std::uint64_t pot = effort.search / 2;
  const std::uint64_t given = pot;
  Search search(blocks, bound, best, pot);
  bool ended = false;
  for (std::uint64_t nodes = 4 * blocks.size(); !ended && pot > blocks.size(); nodes *= 2) {
    const std::uint64_t before = pot;
    for (std::size_t o = 0; o < 4 && !ended; ++o) ended = search.run(orders[o], nodes);
    if (pot == before) break;
  }
  effort.search -= given - pot;
  return best;
}

// Groups by time, recursively: where nothing lives across a moment the two sides are independent; a block that lives
// as long as its whole group lies under the rest, which may then fall apart further. A training step, whose
// activations nest, often dissolves completely.
class Packer {
 public:
  explicit Packer(std::size_t intervals) { packing_.offsets.resize(intervals); }

  Packing run(std::vector<Block> blocks) {
    std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.first < b.first; });
    packing_.lower_bound = peak(blocks);
    packing_.total = pack_level(blocks, 0);
    return std::move(packing_);
  }

 private:
  // Blocks by first use. Returns the end of the highest block, or base.
  Bytes pack_level(std::span<Block> blocks, Bytes base) {
    // Thousands of nested lives are a level each: beyond a depth that any stack bears, they are solved as they are.
    constexpr int kMaxDepth = 2000;
    if (depth_ == kMaxDepth) return solve_at(blocks, base);
    ++depth_;
    Bytes total = base;
    std::size_t begin = 0;
    while (begin < blocks.size()) {
      std::size_t end = begin;
      std::uint32_t last = blocks[begin].last;
      while (end < blocks.size() && blocks[end].first <= last) last = std::max(last, blocks[end++].last);
      total = std::max(total, pack_group(blocks.subspan(begin, end - begin), last, base));
      begin = end;
    }
    --depth_;
    return total;
  }

  Bytes pack_group(std::span<Block> blocks, std::uint32_t last, Bytes base) {
    const std::uint32_t first = blocks.front().first;
    const auto middle = std::stable_partition(blocks.begin(), blocks.end(),
                                              [&](const Block& b) { return b.first == first && b.last == last; });
    const std::span<Block> whole(blocks.begin(), middle), rest(middle, blocks.end());
    if (whole.empty()) return solve_at(blocks, base);

    for (const Block& b : whole) {
      packing_.offsets[b.id] = base;
      base += b.size;
    }
    return pack_level(rest, base);
  }

  Bytes solve_at(std::span<const Block> blocks, Bytes base) {
    const Solution solution = solve(blocks, effort_);
    for (std::size_t i = 0; i < blocks.size(); ++i) packing_.offsets[blocks[i].id] = base + solution.offsets[i];
    return base + solution.total;
  }

  Packing packing_;
  Effort effort_;
  int depth_ = 0;
};

}  // namespace

Packing pack(std::span<const Interval> intervals, std::uint64_t alignment) {
  return Packer(intervals.size()).run(blocks_of(intervals, alignment));
}

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
    if (offsets[i] % alignment != 0) return fmt::format("alignment: {} is not at a multiple of {}", text(i), alignment);
    if (offsets[i] > total || a.size > total - offsets[i])
      return fmt::format("bounds: {} ends beyond the total of {}", text(i), total);
  }
  // In order of time: what lives when another begins lies by offset, and only its two neighbours can overlap.
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (intervals[i].size > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return intervals[a].first < intervals[b].first; });
  std::vector<std::size_t> ends = order;
  std::stable_sort(ends.begin(), ends.end(),
                   [&](std::size_t a, std::size_t b) { return intervals[a].last < intervals[b].last; });
  std::map<std::uint64_t, std::size_t> live;  // by offset
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
