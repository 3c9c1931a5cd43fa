// offsets.h: where each block of memory lies: a pure function from live intervals to offsets.
// Contract: deterministic; every block at a multiple of the alignment; two blocks that live at the same time do not
// overlap. One function serves the arena and the tiles of regions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace graphrun::plan {

struct Interval {
  std::uint64_t size = 0;   // bytes; 0 is allowed and takes no room
  std::uint32_t first = 0;  // first and last time of use, inclusive
  std::uint32_t last = 0;
};

struct Packing {
  std::vector<std::uint64_t> offsets;  // one an interval
  std::uint64_t total = 0;             // bytes from 0 to the end of the highest block, padded to the alignment
  std::uint64_t lower_bound = 0;       // peak over time of the live bytes, each padded to the alignment; <= total
};

// Tries several greedy orders, then a bounded exact search when none meets the lower bound; returns the best packing.
Packing pack(std::span<const Interval> intervals, std::uint64_t alignment = 1);

// Independent check, O(n log n): "" or a sentence that names the rule and the two intervals.
std::string validate(std::span<const Interval> intervals, std::span<const std::uint64_t> offsets, std::uint64_t total,
                     std::uint64_t alignment = 1);

}  // namespace graphrun::plan
