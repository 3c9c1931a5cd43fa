// Implements packing.h with pack.h.
#include "graphrun/packing.h"

#include <fmt/format.h>

#include <algorithm>

#include "graphrun/error.h"
#include "packing/pack.h"

namespace graphrun {
namespace {

void check_block(const BlockLife& block, std::size_t number, std::uint64_t& sum) {
  const auto refuse = [&](std::string_view what) {
    throw Error(ErrorKind::input, "packing.block", fmt::format("block {}: {}", number, what));
  };
  if (block.lower >= block.upper) refuse(fmt::format("the live range [{}, {}) is empty", block.lower, block.upper));
  if (block.alignment == 0) refuse("the alignment is 0");
  const bool fits = !__builtin_add_overflow(sum, block.size, &sum) &&
                    !__builtin_add_overflow(sum, block.alignment - 1, &sum) && sum >> 63 == 0;
  if (!fits) refuse("the sizes add up to more than 63 bits");
}

// Only the order of times matters.
std::vector<plan::Interval> intervals_of(std::span<const BlockLife> blocks) {
  std::vector<std::int64_t> times;
  for (const BlockLife& b : blocks) {
    times.push_back(b.lower);
    times.push_back(b.upper);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto rank = [&](std::int64_t time) {
    return static_cast<std::uint32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  std::vector<plan::Interval> intervals;
  for (const BlockLife& b : blocks) intervals.push_back({b.size, rank(b.lower), rank(b.upper) - 1, b.alignment});
  return intervals;
}

}  // namespace

BlockPacking pack_blocks(std::span<const BlockLife> blocks, const PackingSearch& search) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) check_block(blocks[i], i, sum);
  const std::vector<plan::Interval> intervals = intervals_of(blocks);
  bool stopped = false;
  plan::Effort effort;
  effort.enough = search.capacity.value_or(0);
  effort.stop = [&] { return stopped = stopped || (search.stop && search.stop()); };
  BlockPacking best;
  // A group of blocks reserves some of the steps for later groups. So the packer runs again with more steps, as long as
  // that helps.
  std::uint64_t left = search.steps;
  for (effort.search = std::min(left, effort.search);; effort.search = std::min(left, 4 * effort.search)) {
    const plan::Packing packing = plan::pack(intervals, 1, effort);
    const std::uint64_t proven = std::max(best.proven, packing.proven);
    if (best.offsets.empty() || packing.height < best.height) best = packing;
    best.proven = proven;
    left -= effort.search;
    const bool is_settled =
        best.height <= std::max(effort.enough, best.proven) || (search.capacity && best.proven > *search.capacity);
    if (is_settled || left == 0 || stopped || packing.steps < effort.search / 4) return best;
  }
}

std::string check_packing(std::span<const BlockLife> blocks, const BlockPacking& packing) {
  return plan::validate(intervals_of(blocks), packing.offsets, packing.height);
}

}  // namespace graphrun
