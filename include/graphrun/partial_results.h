// partial_results.h: in how many sets of accumulators the partitions of a region over rows have their partial results
// (Combine in program.h). With as many sets as partitions, all of these run at once. With fewer they run in groups, one
// after the other: a group's results become one, which waits for the next ones as a digit of a binary counter waits for
// its carry. So each addition has the operands that it would have had, and the bits do not depend on the sets.
//
// The first waiting set is stored in place of the final values, which the rows of the stage therefore may not read.
// Contract: pure functions; partitions >= 1. A host runs a region with any number of sets from min_sets() on.
#pragma once

#include <bit>
#include <cstdint>

namespace graphrun {

// For groups of `group` partitions, a power of two, or of all of them.
constexpr std::uint64_t sets_for(std::int32_t partitions, std::int32_t group) {
  if (group >= partitions) return static_cast<std::uint64_t>(partitions);
  const auto groups = static_cast<std::uint32_t>((std::int64_t{partitions} + group - 1) / group);
  const int waiting = static_cast<int>(std::bit_width(groups)) - 1;  // at most, before the last group runs
  return static_cast<std::uint64_t>(group) + static_cast<std::uint64_t>(waiting) - 1;
}

constexpr std::uint64_t min_sets(std::int32_t partitions) {
  return sets_for(partitions, 1);
}

// The largest groups for which there are sets enough; 0: none.
constexpr std::int32_t largest_group(std::int32_t partitions, std::uint64_t sets) {
  if (sets >= static_cast<std::uint64_t>(partitions)) return partitions;
  auto group = static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(partitions)) / 2);
  while (group > 0 && sets_for(partitions, group) > sets) group /= 2;
  return group;
}

}  // namespace graphrun
