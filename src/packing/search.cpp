#include "packing/search.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace graphrun::plan {
namespace {

constexpr Index kNobody = std::numeric_limits<Index>::max();
constexpr std::size_t kDeepest = 3000;   // recursion depth that fits any stack
constexpr double kWeightGrowth = 1.001;  // recent failures weigh more

}  // namespace

Search::Search(std::span<const Block> blocks) : blocks_(in_sections(blocks)) {
  std::size_t sections = 0;
  for (const Block& b : blocks_) sections = std::max(sections, b.last + std::size_t{1});
  words_ = (blocks.size() + sections + 63) / 64;
  for (std::vector<Bytes>* bytes : {&load_, &floor_, &slack_}) bytes->resize(sections);
  for (std::vector<Index>* list : {&top_, &wastes_}) list->resize(sections);
  for (std::vector<std::vector<Index>>* lists : {&starts_, &ends_, &covers_}) lists->resize(sections);
  crossing_.resize(sections + 1);
  crosses_.resize(sections + 1);
  left_weight_.assign(sections, 1);
  right_weight_.assign(sections, 1);
  is_placed_.resize(blocks.size());
  offsets_.resize(blocks.size());
  for (Index i = 0; i < blocks_.size(); ++i) {
    for (Section s = blocks_[i].first; s <= blocks_[i].last; ++s) {
      load_[s] += blocks_[i].size;
      covers_[s].push_back(i);
      if (s == blocks_[i].first) continue;
      ++crossing_[s];
      crosses_[s].push_back(i);
    }
  }
  waiting_ = load_;
}

Answer Search::run(Bytes ceiling, std::span<const double> keys, Fill fill, std::uint64_t steps, Meter& meter) {
  ceiling_ = ceiling;
  fill_ = fill;
  for (std::size_t s = 0; s < load_.size(); ++s) {
    if (load_[s] > ceiling) return Answer::impossible;
    slack_[s] = ceiling - load_[s];
  }
  std::fill(floor_.begin(), floor_.end(), 0);
  std::fill(top_.begin(), top_.end(), kNobody);
  by_rank_.resize(blocks_.size());
  rank_.resize(blocks_.size());
  std::iota(by_rank_.begin(), by_rank_.end(), Index{0});
  std::ranges::stable_sort(by_rank_, std::ranges::greater{}, [&](Index i) { return keys[i]; });
  for (std::vector<Index>& list : starts_) list.clear();
  for (std::vector<Index>& list : ends_) list.clear();
  for (Index r = 0; r < by_rank_.size(); ++r) {
    const Index i = by_rank_[r];
    rank_[i] = r;
    starts_[blocks_[i].first].push_back(i);
    ends_[blocks_[i].last].push_back(i);
  }
  steps_ = reported_ = 0;
  limit_ = std::min(steps, meter.left());
  meter_ = &meter;
  out_ = false;
  const bool found = load_.empty() || solve(0, static_cast<Section>(load_.size()) - 1, 0);
  meter.spend(steps_ - reported_);
  const std::vector<Bytes> offsets = offsets_;
  take_back(0);
  candidates_.clear();
  offsets_ = offsets;
  if (found) return Answer::found;
  return out_ ? Answer::open : Answer::impossible;
}

bool Search::is_wall(Section boundary, Bytes level) const {
  if (boundary == 0 || boundary == load_.size() || crossing_[boundary] == 0) return true;
  return waiting_[boundary - 1] == 0 || waiting_[boundary] == 0 || floor_[boundary - 1] > level ||
         floor_[boundary] > level;
}

// Height of the wall above `level`: up to the ceiling if no waiting block crosses it, as no edge can be level with it.
Bytes Search::wall_above(Section boundary, Section outside, Bytes level) const {
  if (boundary == 0 || boundary == load_.size() || crossing_[boundary] == 0) return ceiling_ - level;
  return floor_[outside] - level;
}

bool Search::fits(Index block, const Valley& valley) const {
  return is_placed_[block] == 0 && blocks_[block].first >= valley.first && blocks_[block].last <= valley.last;
}

const std::vector<Index>& Search::at_end(const Valley& valley) const {
  return valley.at_left ? starts_[valley.first] : ends_[valley.last];
}

// Counts equal neighbours in the order once.
std::size_t Search::candidates(const Valley& valley) const {
  std::size_t count = slack_[valley.end()] > 0 ? 1 : 0;
  const Block* before = nullptr;
  for (const Index i : at_end(valley)) {
    if (!fits(i, valley)) continue;
    if (before == nullptr || !are_equal(*before, blocks_[i])) ++count;
    before = &blocks_[i];
  }
  return count;
}

// Picks the valley end with the fewest candidates per weight. Returns false if an end has none: the branch fails.
bool Search::find_valley(Section first, Section last, Valley& best, std::size_t depth) {
  double least = std::numeric_limits<double>::infinity();
  for (Section s = first; s <= last;) {
    if (waiting_[s] == 0) {
      ++s;
      continue;
    }
    Valley valley{s, s, true};
    const Bytes level = floor_[s];
    while (valley.last < last && floor_[valley.last + 1] == level && waiting_[valley.last + 1] > 0 &&
           crossing_[valley.last + 1] > 0)
      ++valley.last;
    s = valley.last + 1;
    if (!is_wall(valley.first, level) || !is_wall(valley.last + 1, level)) continue;
    for (const bool at_left : {true, false}) {
      valley.at_left = at_left;
      steps_ += at_end(valley).size();
      const std::size_t count = candidates(valley);
      if (count == 0) {
        fail_at(valley);
        explain(blame(depth), valley);
        return false;
      }
      const double weight = at_left ? left_weight_[valley.first] : right_weight_[valley.last];
      double score = count == 1 ? 0 : static_cast<double>(count) / weight;
      if (fill_ == Fill::lowest) score = static_cast<double>(level) + score / static_cast<double>(blocks_.size() + 1);
      if (score >= least) continue;
      least = score;
      best = valley;
    }
  }
  return true;
}

void Search::fail_at(const Valley& valley) {
  (valley.at_left ? left_weight_ : right_weight_)[valley.end()] += weight_step_;
  weight_step_ *= kWeightGrowth;
  constexpr double kLarge = 1e50;
  if (weight_step_ < kLarge) return;
  weight_step_ = 1;
  for (std::vector<double>* weights : {&left_weight_, &right_weight_}) {
    for (double& w : *weights) w = std::max(1.0, w / kLarge);
  }
}

void Search::accuse(std::uint64_t* blame, Index decision) const {
  if (decision != kNobody) blame[decision / 64] |= std::uint64_t{1} << decision % 64;
}

// Blames the decisions without which this end would have more candidates.
void Search::explain(std::uint64_t* blame, const Valley& valley) const {
  const Section end = valley.end();
  const Bytes level = floor_[end];
  accuse(blame, top_[end]);
  const Section near = valley.at_left ? end : end + 1;
  if (near > 0 && near < load_.size()) {
    const Section beside = valley.at_left ? end - 1 : end + 1;
    if (floor_[beside] > level) {
      accuse(blame, top_[beside]);
    } else {
      for (const Index i : crosses_[near])
        if (is_placed_[i] != 0) accuse(blame, i);
    }
  }
  for (const Index i : at_end(valley)) {
    if (is_placed_[i] != 0) {
      accuse(blame, i);
    } else if (!fits(i, valley)) {  // the wall at the other end keeps it out
      accuse(blame, top_[valley.at_left ? valley.last + 1 : valley.first - 1]);
    }
  }
  if (load_[end] < ceiling_) accuse(blame, static_cast<Index>(blocks_.size()) + end);  // some slack is wasted already
}

// Requires sections of equal floor. Returns false if alignment wastes more bytes than the slack.
bool Search::place(Index block, Bytes floor) {
  const Block& b = blocks_[block];
  const Bytes offset = aligned(floor, b.alignment);
  changes_.push_back({block, floor, saved_tops_.size()});
  is_placed_[block] = 1;
  offsets_[block] = offset;
  bool has_room = true;
  for (Section s = b.first; s <= b.last; ++s) {
    floor_[s] = offset + b.size;
    waiting_[s] -= b.size;
    has_room = has_room && slack_[s] >= offset - floor;
    slack_[s] -= offset - floor;  // may wrap around; take_back() reverses it
    if (s > b.first) --crossing_[s];
    saved_tops_.push_back(top_[s]);
    top_[s] = block;
  }
  steps_ += b.last - b.first + 1;
  return has_room;
}

bool Search::waste(Section section, Bytes floor) {
  if (floor - floor_[section] > slack_[section]) return false;
  changes_.push_back({static_cast<Index>(blocks_.size()) + section, floor_[section], saved_tops_.size()});
  saved_tops_.push_back(top_[section]);
  slack_[section] -= floor - floor_[section];
  ++wastes_[section];
  floor_[section] = floor;
  top_[section] = static_cast<Index>(blocks_.size()) + section;
  return true;
}

// Undoes changes until `changes` of them are left.
void Search::take_back(std::size_t changes) {
  for (; changes_.size() > changes; changes_.pop_back()) {
    const Change& change = changes_.back();
    if (change.what < blocks_.size()) {
      const Block& b = blocks_[change.what];
      is_placed_[change.what] = 0;
      for (Section s = b.first; s <= b.last; ++s) {
        floor_[s] = change.old_floor;
        waiting_[s] += b.size;
        slack_[s] += offsets_[change.what] - change.old_floor;
        if (s > b.first) ++crossing_[s];
        top_[s] = saved_tops_[change.tops + (s - b.first)];
      }
    } else {
      const auto s = static_cast<Section>(change.what - blocks_.size());
      slack_[s] += floor_[s] - change.old_floor;
      --wastes_[s];
      floor_[s] = change.old_floor;
      top_[s] = saved_tops_[change.tops];
    }
    saved_tops_.resize(change.tops);
  }
}

// Lowest offset of a waiting block over the valley's end if none is placed on the floor itself.
Bytes Search::waste_up_to(const Valley& valley) {
  const Section end = valley.end();
  const Bytes level = floor_[end];
  Bytes least = std::numeric_limits<Bytes>::max();
  for (const Index i : covers_[end]) {
    ++steps_;
    if (is_placed_[i] != 0) continue;
    const Block& b = blocks_[i];
    Bytes lowest = level;
    for (Section s = b.first; s <= b.last && lowest < least; ++s) lowest = std::max(lowest, floor_[s]);
    steps_ += b.last - b.first + 1;
    if (lowest == level) {  // it fits in the valley: a block that is not over the end must support it
      lowest = std::numeric_limits<Bytes>::max();
      const Section from = valley.at_left ? end + 1 : b.first, to = valley.at_left ? b.last + 1 : end;
      for (Section s = from; s < to; ++s) {
        for (const Index other : valley.at_left ? starts_[s] : ends_[s]) {
          ++steps_;
          if (is_placed_[other] == 0) lowest = std::min(lowest, level + blocks_[other].size);
        }
      }
    }
    least = std::min(least, lowest);
  }
  return least;
}

// First the candidates that are level with a wall or fill the valley: they leave fewer edges. Then by rank.
void Search::order_candidates(const Valley& valley, std::size_t from) {
  const Bytes level = floor_[valley.end()];
  const Bytes left = wall_above(valley.first, valley.first - 1, level);
  const Bytes right = wall_above(valley.last + 1, valley.last + 1, level);
  scores_.clear();
  for (std::size_t c = from; c < candidates_.size(); ++c) {
    const Block& b = blocks_[candidates_[c]];
    const bool at_left = b.first == valley.first, at_right = b.last == valley.last;
    std::uint32_t rest = 5;  // smaller is better
    if (at_left && b.size == left) rest -= 2;
    if (at_right && b.size == right) rest -= 2;
    if (at_left && at_right) rest -= 1;
    scores_.emplace_back(rest, rank_[candidates_[c]]);
  }
  std::ranges::sort(scores_);
  for (std::size_t c = 0; c < scores_.size(); ++c) candidates_[from + c] = by_rank_[scores_[c].second];
}

// Packs all waiting blocks in these sections, or undoes its changes and stores the decisions at fault in blame(depth).
bool Search::solve(Section first, Section last, std::size_t depth) {
  if (++calls_ % 1024 == 0) {  // the caller may want to stop
    meter_->spend(steps_ - reported_);
    reported_ = steps_;
    if (meter_->ended()) limit_ = 0;
  }
  if (steps_ >= limit_ || depth > kDeepest) {
    out_ = true;
    return false;
  }
  if (blames_.size() < (depth + 2) * words_) blames_.resize((depth + 64) * 2 * words_);
  steps_ += 2 * (last - first + 1);
  bool waits = false, falls_apart = false;
  for (Section s = first; s <= last; ++s) {
    if (waits && crossing_[s] == 0) falls_apart = true;
    if (waiting_[s] > 0) waits = true;
  }
  if (!waits) return true;
  if (falls_apart || waiting_[first] == 0) return solve_parts(first, last, depth);

  std::fill_n(blame(depth), words_, 0);
  Valley valley;
  if (!find_valley(first, last, valley, depth)) return false;
  explain(blame(depth), valley);
  bool settled = false;
  if (try_blocks(first, last, depth, valley, settled)) return true;
  return !settled && !out_ && try_waste(first, last, depth, valley);
}

bool Search::solve_parts(Section first, Section last, std::size_t depth) {
  const std::size_t before = changes_.size();
  std::vector<std::pair<Section, Section>> parts;
  for (Section s = first; s <= last; ++s) {
    if (waiting_[s] == 0) continue;
    Section end = s;
    while (end < last && crossing_[end + 1] > 0) ++end;
    parts.emplace_back(s, end);
    s = end;
  }
  // Smallest part first: if it fails, the others need no search.
  std::ranges::stable_sort(parts, {}, [](const auto& part) { return part.second - part.first; });
  for (const auto& [begin, end] : parts) {
    if (solve(begin, end, depth)) continue;
    take_back(before);
    return false;
  }
  return true;
}

// Sets `settled` if the failure does not depend on this decision.
bool Search::try_blocks(Section first, Section last, std::size_t depth, const Valley& valley, bool& settled) {
  const std::size_t before = changes_.size(), from = candidates_.size();
  const Bytes level = floor_[valley.end()];
  for (const Index i : at_end(valley)) {
    if (fits(i, valley)) candidates_.push_back(i);
  }
  order_candidates(valley, from);
  const std::size_t end = candidates_.size();
  bool found = false;
  for (std::size_t c = from; c < end && !found && !settled && !out_; ++c) {
    const Index i = candidates_[c];
    const bool is_repeated = std::any_of(candidates_.begin() + static_cast<std::ptrdiff_t>(from),
                                         candidates_.begin() + static_cast<std::ptrdiff_t>(c),
                                         [&](Index other) { return are_equal(blocks_[other], blocks_[i]); });
    if (is_repeated) continue;
    if (!place(i, level)) {  // any earlier waste over the block may be to blame
      take_back(before);
      std::fill_n(blame(depth), words_, ~std::uint64_t{0});
      continue;
    }
    found = solve(first, last, depth + 1);
    if (found) break;
    take_back(before);
    if (out_) break;
    settled = !take_blame(depth, i, false);
  }
  candidates_.resize(from);
  return found;
}

bool Search::try_waste(Section first, Section last, std::size_t depth, const Valley& valley) {
  const Section end = valley.end();
  if (slack_[end] == 0) return false;
  const std::size_t before = changes_.size();
  const Bytes floor = waste_up_to(valley);
  explain_waste(blame(depth), valley, floor);
  if (floor == std::numeric_limits<Bytes>::max() || !waste(end, floor)) return false;
  if (solve(first, last, depth + 1)) return true;
  take_back(before);
  if (out_) return false;
  take_blame(depth, static_cast<Index>(blocks_.size()) + end, wastes_[end] > 0);
  return false;
}

// Adds the blame for the failure at depth + 1, except for `decision`, unless an earlier waste has the same bit. Returns
// false if the failure does not depend on the decision: then it is the only one that counts.
bool Search::take_blame(std::size_t depth, Index decision, bool is_repeated) {
  std::uint64_t* const mine = blame(depth);
  std::uint64_t* const theirs = blame(depth + 1);
  const std::uint64_t bit = std::uint64_t{1} << decision % 64;
  if ((theirs[decision / 64] & bit) == 0) {
    std::copy_n(theirs, words_, mine);
    return false;
  }
  if (!is_repeated) theirs[decision / 64] &= ~bit;
  for (std::size_t w = 0; w < words_; ++w) mine[w] |= theirs[w];
  return true;
}

// Blames the decisions that keep waiting blocks over the valley's end from being placed below `floor`.
void Search::explain_waste(std::uint64_t* blame, const Valley& valley, Bytes floor) {
  const Section end = valley.end();
  const Bytes level = floor_[end];
  const Section near = valley.at_left ? end : end + 1;
  const bool has_wall = near > 0 && near < load_.size();
  const bool wall_keeps = has_wall && floor_[valley.at_left ? end - 1 : end + 1] >= floor;  // explain() blames it
  for (const Index i : covers_[end]) {
    const Block& b = blocks_[i];
    const bool crosses = valley.at_left ? b.first < end : b.last > end;
    steps_ += 1;
    if (crosses && wall_keeps) continue;
    if (is_placed_[i] != 0) {
      accuse(blame, i);
      continue;
    }
    Section high = b.first;
    while (high <= b.last && floor_[high] < floor) ++high;
    steps_ += high - b.first;
    if (high <= b.last) {
      accuse(blame, top_[high]);
      continue;
    }
    // The smallest block that waits there supports it; those that are placed could have been smaller.
    const Section from = valley.at_left ? end + 1 : b.first, to = valley.at_left ? b.last + 1 : end;
    for (Section s = from; s < to; ++s) {
      for (const Index other : valley.at_left ? starts_[s] : ends_[s]) {
        ++steps_;
        if (is_placed_[other] != 0 && level + blocks_[other].size < floor) accuse(blame, other);
      }
    }
    for (Section s = b.first; s <= b.last; ++s) accuse(blame, top_[s]);
  }
}

}  // namespace graphrun::plan
