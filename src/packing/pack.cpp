#include "packing/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

#include "base/checked.h"
#include "packing/block.h"
#include "packing/composites.h"
#include "packing/search.h"

namespace graphrun::plan {
namespace {

constexpr std::size_t kMaxSearched = 2048;
constexpr std::uint64_t kFirstRun = 200'000;      // steps; runs that begin badly seldom recover
constexpr std::uint64_t kFirstTurn = 20'000'000;  // steps at the lowest ceiling, before higher ones are tried

// Searches for packings under a ceiling, with orders that change from run to run.
class Prober {
 public:
  Prober(std::span<const Block> blocks, Meter& meter) : blocks_(in_sections(blocks)), meter_(meter), search_(blocks_) {}

  // After Answer::found, offsets() has the packing.
  Answer ask(Bytes ceiling, std::uint64_t steps) {
    const std::uint64_t from = meter_.left();
    const auto left = [&] {
      const std::uint64_t spent = from - meter_.left();
      return spent < steps ? steps - spent : 0;
    };
    // Twice as many runs of each length as of the next: near-optimal restarts for any problem (Luby et al. 1993).
    const std::uint64_t shortest = std::max<std::uint64_t>(kFirstRun, 16 * blocks_.size());
    // Plain and joined searches get the same number of steps, whatever a single run takes.
    std::uint64_t spent_plain = 0, spent_joined = 0;
    for (unsigned turn = 0; left() > 0 && !meter_.ended(); ++turn) {
      const std::uint64_t run = shortest << std::countr_zero(turn / 2 + 1);
      const std::uint64_t before = meter_.left(), now = std::min(run, left());
      const bool is_plain = spent_plain <= spent_joined || !joins_help_;
      const Answer answer = is_plain ? plain(ceiling, now) : joined(ceiling, now);
      if (answer != Answer::open) return answer;
      (is_plain ? spent_plain : spent_joined) += before - meter_.left();
    }
    return Answer::open;
  }

  const std::vector<Bytes>& offsets() const { return offsets_; }

 private:
  Answer plain(Bytes ceiling, std::uint64_t steps) {
    const Answer answer = search_.run(ceiling, keys(blocks_, plain_runs_), order_of(plain_runs_), steps, meter_);
    ++plain_runs_;
    if (answer == Answer::found) offsets_ = search_.offsets();
    return answer;
  }

  // Tries sets of composites in turn: if one of a set is bad, the search often ends soon.
  Answer joined(Bytes ceiling, std::uint64_t steps) {
    const std::uint64_t end = meter_.left() - std::min(steps, meter_.left());
    while (meter_.left() > end && !meter_.ended()) {
      const auto boldness = static_cast<Composites::Boldness>(2 - joined_runs_ % 3);
      const Composites composites(blocks_, boldness, random_);
      meter_.spend(composites.steps());
      if (boldness == Composites::Boldness::all_stacks && 20 * composites.blocks().size() > 19 * blocks_.size())
        joins_help_ = false;
      if (!joins_help_) return Answer::open;
      const std::vector<double> order = keys(composites.blocks(), joined_runs_);
      const Fill fill = order_of(joined_runs_++);
      if (composites.blocks().size() == blocks_.size()) continue;
      Search search(composites.blocks());
      if (search.run(ceiling, order, fill, steps / 2, meter_) != Answer::found) continue;
      offsets_ = composites.expand(search.offsets());
      return Answer::found;
    }
    return Answer::open;
  }

  static Fill order_of(unsigned kind) { return kind / 4 % 2 == 0 ? Fill::fewest : Fill::lowest; }

  // Keys for wide blocks first, then large ones, then tall ones; after the first round, with noise.
  std::vector<double> keys(std::span<const Block> blocks, unsigned kind) {
    std::vector<double> keys;
    for (const Block& b : blocks) {
      const double width = static_cast<double>(b.last - b.first) + 1, size = static_cast<double>(b.size);
      const double noise = kind < 4 ? 1 : static_cast<double>(512 + random_() % 1024) / 1024;
      const double by_width = width * 1e9 + size / 1e9;
      keys.push_back(noise * (kind % 4 == 1 ? width * size : kind % 4 == 3 ? size : by_width));
    }
    return keys;
  }

  std::vector<Block> blocks_;
  Meter& meter_;
  Search search_;
  bool joins_help_ = true;  // false if too few blocks join to be worth the time
  std::mt19937 random_{1};
  unsigned plain_runs_ = 0, joined_runs_ = 0;
  std::vector<Bytes> offsets_;
};

Bytes total_of(std::span<const Block> blocks, std::span<const Bytes> offsets) {
  Bytes total = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) total = std::max(total, offsets[i] + blocks[i].size);
  return total;
}

// Best packing of a group that cannot be split in time: greedy first, then exact searches under a ceiling. Stops at a
// packing of at most `goal`, or of the peak.
Packing pack_tightly(std::span<const Block> blocks, Bytes goal, Meter& greedy, Meter& search) {
  const Bytes bound = peak(blocks), enough = std::max(goal, bound);
  Packing best = pack_greedily(blocks, enough, greedy);
  best.proven = bound;
  if (best.height <= enough || blocks.size() > kMaxSearched || search.ended()) return best;

  // Ends of blocks are sums of sizes and of multiples of alignments.
  Bytes unit = 0;
  for (const Block& b : blocks) unit = std::gcd(unit, b.alignment == 1 ? b.size : std::gcd(b.size, b.alignment));
  Prober prober(blocks, search);
  const auto ask = [&](Bytes ceiling, std::uint64_t steps) {
    const Answer answer = prober.ask(ceiling, steps);
    if (answer == Answer::found) {
      best.offsets = prober.offsets();
      best.height = total_of(blocks, best.offsets);
    }
    if (answer == Answer::impossible) best.proven = std::max(best.proven, ceiling / unit * unit + unit);
    return answer;
  };
  // A group reserves half of the steps for later groups.
  const std::uint64_t keep = search.left() == std::numeric_limits<std::uint64_t>::max() ? 0 : search.left() / 2;
  const auto left = [&] { return search.left() > keep && !search.ended() ? search.left() - keep : 0; };
  if (goal >= best.proven) {
    ask(goal, left());
    return best;
  }
  // Each turn tries the lowest ceiling that may be possible, then bisects between it and the best total.
  for (std::uint64_t steps = kFirstTurn; best.height > best.proven && left() > 0; steps *= 2) {
    ask(best.proven, std::min(steps, left()));
    Bytes low = best.proven / unit * unit + unit;  // lowest ceiling worth trying
    while (low < best.height && left() > 0) {
      const Bytes ceiling = low + (best.height - 1 - low) / unit / 2 * unit;
      if (ask(ceiling, std::min(steps / 2, left())) != Answer::found) low = ceiling + unit;
      low = std::max(low, best.proven);
    }
  }
  return best;
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
    if (padded < interval.size || __builtin_add_overflow(sum, padded, &sum) ||
        __builtin_add_overflow(sum, interval.alignment - 1, &sum) || sum >> 63 != 0)
      throw std::logic_error("pack: the sizes add up to more than 63 bits");
    blocks.push_back({interval, static_cast<Index>(i)});
    blocks.back().size = padded;
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
    std::ranges::stable_sort(blocks, {}, &Block::first);
    packing_.lower_bound = peak(blocks);
    const std::uint64_t steps = search_.left();
    const Level level = pack_level(blocks, 0);
    packing_.steps = steps - search_.left();
    packing_.height = level.total;
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
    const Packing tight = pack_tightly(blocks, goal_ > base ? goal_ - base : 0, greedy_, search_);
    for (std::size_t i = 0; i < blocks.size(); ++i) packing_.offsets[blocks[i].id] = base + tight.offsets[i];
    return {base + tight.height, base + tight.proven};
  }

  Packing packing_;
  Bytes goal_;
  Meter greedy_, search_;
  int depth_ = 0;
};

}  // namespace

Packing pack(std::span<const Interval> intervals, std::uint64_t alignment, const Effort& effort) {
  return Packer(intervals.size(), effort).run(blocks_of(intervals, alignment));
}

}  // namespace graphrun::plan
