#include "compiler/packing/tight.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>
#include <random>
#include <utility>

#include "compiler/packing/composites.h"
#include "compiler/packing/greedy.h"
#include "compiler/packing/search.h"

namespace graphrun::plan {
namespace {

constexpr std::size_t kMaxSearched = 2048;
constexpr std::uint64_t kFirstRun = 200'000;      // steps; runs that begin badly seldom recover
constexpr std::uint64_t kFirstTurn = 20'000'000;  // steps at the lowest ceiling, before higher ones are tried

// Same problem with sections as times: only the overlaps of live ranges matter.
std::vector<Block> in_sections(std::span<const Block> blocks) {
  const Sections sections(blocks);
  std::vector<Block> cut(blocks.begin(), blocks.end());
  for (Block& b : cut) {
    const std::uint32_t last = sections.last_of(b);
    b.first = sections.first_of(b);
    b.last = last;
  }
  return cut;
}

// Searches for packings under a ceiling, with orders that change from run to run.
class Prober {
 public:
  Prober(std::span<const Block> blocks, Meter& meter) : blocks_(in_sections(blocks)), meter_(meter), search_(blocks) {}

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

}  // namespace

TightPacking pack_tightly(std::span<const Block> blocks, Bytes goal, Meter& greedy, Meter& search) {
  TightPacking result{{}, peak(blocks)};
  const Bytes enough = std::max(goal, result.proven);
  Solution& best = result.solution;
  best = pack_greedily(blocks, enough, greedy);
  if (best.total <= enough || blocks.size() > kMaxSearched || search.ended()) return result;

  // Ends of blocks are sums of sizes and of multiples of alignments.
  Bytes unit = 0;
  for (const Block& b : blocks) unit = std::gcd(unit, b.alignment == 1 ? b.size : std::gcd(b.size, b.alignment));
  Prober prober(blocks, search);
  const auto ask = [&](Bytes ceiling, std::uint64_t steps) {
    const Answer answer = prober.ask(ceiling, steps);
    if (answer == Answer::found) best = {prober.offsets(), total_of(blocks, prober.offsets())};
    if (answer == Answer::impossible) result.proven = std::max(result.proven, ceiling / unit * unit + unit);
    return answer;
  };
  // A group reserves half of the steps for later groups.
  const std::uint64_t keep = search.left() == std::numeric_limits<std::uint64_t>::max() ? 0 : search.left() / 2;
  const auto left = [&] { return search.left() > keep && !search.ended() ? search.left() - keep : 0; };
  if (goal >= result.proven) {
    ask(goal, left());
    return result;
  }
  // Each turn tries the lowest ceiling that may be possible, then bisects between it and the best total.
  for (std::uint64_t steps = kFirstTurn; best.total > result.proven && left() > 0; steps *= 2) {
    ask(result.proven, std::min(steps, left()));
    Bytes low = result.proven / unit * unit + unit;  // lowest ceiling worth trying
    while (low < best.total && left() > 0) {
      const Bytes ceiling = low + (best.total - 1 - low) / unit / 2 * unit;
      if (ask(ceiling, std::min(steps / 2, left())) != Answer::found) low = ceiling + unit;
      low = std::max(low, result.proven);
    }
  }
  return result;
}

}  // namespace graphrun::plan
