#include "packing/composites.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace graphrun::plan {
namespace {

// std::shuffle differs between standard libraries.
void shuffle(std::vector<Index>& list, std::mt19937& random) {
  for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random() % i]);
}

// Skips some candidates at random, so that another attempt differs if this one fails.
bool is_skipped(std::uint64_t a, std::uint64_t b, std::uint32_t salt, unsigned of_16) {
  std::uint64_t hash = (a * 0x9e3779b97f4a7c15u ^ b) * 0xbf58476d1ce4e5b9u ^ salt;
  hash *= 0x94d049bb133111ebu;
  return hash >> 60 < of_16;
}

using TimeAndSize = std::pair<std::uint64_t, Bytes>;

}  // namespace

Composites::Composites(std::span<const Block> blocks, Boldness boldness, std::mt19937& random)
    : given_(blocks.size()),
      salt_(static_cast<std::uint32_t>(random())),
      skipped_(static_cast<unsigned>(random() % 8)) {
  for (const Block& b : blocks) add({b});
  bool has_joined = true;
  while (has_joined) {
    has_joined = join_in_time(random) || (boldness >= Boldness::fitting_stacks && stack_to_fit(random)) ||
                 (boldness == Boldness::all_stacks && stack_any(random));
    steps_ += 32 * parts_.size();
  }
  for (const Part& part : parts_) {
    if (!part.is_used) top_.push_back(part.block);
  }
}

void Composites::add(Part part) {
  part.block.id = static_cast<Index>(parts_.size());
  parts_.push_back(part);
}

// Joins `a` with its successor `b`, or stacks `b`, which has the same live range, on it.
bool Composites::combine(Index a, Index b, bool is_stack) {
  if (parts_[a].is_used || parts_[b].is_used || a == b) return false;
  const Block& other = parts_[b].block;
  Block both = parts_[a].block;
  if (is_stack && both.size % other.alignment != 0) return false;
  if (is_stack) both.size += other.size;
  both.last = other.last;
  both.alignment = std::lcm(both.alignment, other.alignment);
  parts_[a].is_used = parts_[b].is_used = true;
  add({both, a, b, is_stack});
  return true;
}

Composites::ByLiveRange Composites::by_live_range() const {
  ByLiveRange result;
  for (Index i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].is_used) result[{parts_[i].block.first, parts_[i].block.last}].push_back(i);
  }
  return result;
}

// Joins blocks that end where another of the same size begins.
bool Composites::join_in_time(std::mt19937& random) {
  std::map<TimeAndSize, std::vector<Index>> begins, ends;
  for (Index i = 0; i < parts_.size(); ++i) {
    if (parts_[i].is_used) continue;
    begins[{parts_[i].block.first, parts_[i].block.size}].push_back(i);
    ends[{std::uint64_t{parts_[i].block.last} + 1, parts_[i].block.size}].push_back(i);
  }
  bool joined = false;
  for (auto& [place, earlier] : ends) {
    const auto found = begins.find(place);
    if (found == begins.end() || is_skipped(place.first, place.second, salt_, skipped_ / 4)) continue;
    std::vector<Index>& later = found->second;
    shuffle(earlier, random);
    shuffle(later, random);
    for (std::size_t i = 0; i < std::min(earlier.size(), later.size()); ++i) {
      joined |= combine(earlier[i], later[i], false);
    }
  }
  return joined;
}

// Stacks two blocks of one live range that together have the size of a block just before or after them.
bool Composites::stack_to_fit(std::mt19937& random) {
  std::set<TimeAndSize> begins, ends;
  for (const Part& part : parts_) {
    if (part.is_used) continue;
    begins.emplace(part.block.first, part.block.size);
    ends.emplace(std::uint64_t{part.block.last} + 1, part.block.size);
  }
  bool stacked = false;
  ByLiveRange ranges = by_live_range();
  for (auto& [range, list] : ranges) {
    shuffle(list, random);
    constexpr std::size_t kMax = 64;  // limits the number of pairs
    for (std::size_t i = 0; i < std::min(list.size(), kMax); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Bytes both = parts_[list[i]].block.size + parts_[list[j]].block.size;
        if (begins.contains({std::uint64_t{range.second} + 1, both}) || ends.contains({range.first, both}))
          stacked |= combine(list[i], list[j], true);
      }
    }
  }
  return stacked;
}

// Stacks two blocks of a live range, for the live ranges with the fewest blocks.
bool Composites::stack_any(std::mt19937& random) {
  ByLiveRange ranges = by_live_range();
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  const auto may = [&](const auto& entry) {
    return entry.second.size() >= 2 && !is_skipped(entry.first.first, entry.first.second, salt_, skipped_);
  };
  for (const auto& entry : ranges) {
    if (may(entry)) fewest = std::min(fewest, entry.second.size());
  }
  bool stacked = false;
  for (auto& entry : ranges) {
    if (!may(entry) || entry.second.size() > fewest || (stacked && random() % 2 == 0)) continue;
    shuffle(entry.second, random);
    stacked |= combine(entry.second[0], entry.second[1], true);
  }
  return stacked;
}

std::vector<Bytes> Composites::expand(std::span<const Bytes> offsets) const {
  std::vector<Bytes> all(parts_.size());
  for (std::size_t i = 0; i < top_.size(); ++i) all[top_[i].id] = offsets[i];
  for (std::size_t i = parts_.size(); i-- > given_;) {  // components come before their part
    const Part& part = parts_[i];
    all[part.below] = all[i];
    all[part.above] = all[i] + (part.is_stack ? parts_[part.below].block.size : 0);
  }
  all.resize(given_);
  return all;
}

}  // namespace graphrun::plan
