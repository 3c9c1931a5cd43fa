// pack.h: offsets of memory blocks: a pure function from live ranges to offsets.
// Contract: deterministic; every offset is a multiple of the block's alignment; blocks that are live at the same time
// do not overlap; never worse than the greedy orders. The arena and the tiles of regions use the same function.
//
// Method: time is split where no block is live across, and blocks that are live as long as their group go to the
// bottom. The rest is packed greedily (greedy.cpp). If that misses the lower bound, it is searched exactly (search.h),
// in turn as it is and with merged blocks (composites.h), under a ceiling between the best packing and the proven
// bound. The problem is dynamic storage allocation, NP-hard (Garey and Johnson, SR2). Ideas: canonical packings,
// sections and restarts with several orders are those of MiniMalloc (Moffitt, ASPLOS 2023); filling the lowest valley
// is the skyline of strip packing (Burke, Kendall and Whitwell 2004).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "graphrun/packing.h"

namespace graphrun::plan {

struct Interval {
  std::uint64_t size = 0;   // bytes; 0 is allowed and needs no space
  std::uint32_t first = 0;  // first and last time of use, inclusive
  std::uint32_t last = 0;
  std::uint64_t alignment = 1;  // required for its offset; causes no padding
};

struct Packing : BlockPacking {
  std::uint64_t steps = 0;  // taken by the search
};

// Limits in inner-loop steps, about a third of a nanosecond each; never in seconds, so that a plan does not depend on
// the machine or its load. The greedy orders are O(n^2) in the worst case; groups of more than 2048 are not searched.
struct Effort {
  std::uint64_t greedy = 60'000'000;
  std::uint64_t search = 200'000'000;
  std::uint64_t enough = 0;         // height at which the search may stop; 0: the lower bound
  std::function<bool()> stop = {};  // polled regularly; true ends all improvement, and the result may vary
};

// Sizes are padded to `alignment`, so that all offsets are multiples of it; height, lower bound and proof include the
// padding.
Packing pack(std::span<const Interval> intervals, std::uint64_t alignment = 1, const Effort& effort = {});

// Independent check in O(n log n). Returns "", or a sentence that names the violated rule and the intervals.
std::string validate(std::span<const Interval> intervals, std::span<const std::uint64_t> offsets, std::uint64_t total,
                     std::uint64_t alignment = 1);

}  // namespace graphrun::plan
