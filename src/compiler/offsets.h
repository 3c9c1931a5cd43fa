// offsets.h: where each block of memory lies: a pure function from live intervals to offsets.
// Contract: deterministic; every block at a multiple of its alignment; two blocks that live at the same time do not
// overlap; never worse than the greedy orders. One function serves the arena and the tiles of regions.
//
// How (packing/): time is divided where nothing lives across it, and what lives as long as its group lies at the
// bottom; what remains is packed greedily (greedy.h), and where that misses the lower bound, searched exactly
// (search.h), in turn as it is and with blocks taken together (composites.h), under a ceiling that is lowered from what
// was found and raised from what is proven (tight.h). The problem is dynamic storage allocation, NP-hard (Garey and
// Johnson, SR2). Ideas: canonical packings, sections and restarts with several orders are those of MiniMalloc (Moffitt,
// ASPLOS 2023); filling the lowest valley is the skyline of strip packing (Burke, Kendall and Whitwell 2004).
#pragma once

#include <cstdint>
#include <functional>
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
  std::uint64_t total = 0;             // bytes from 0 to the end of the highest block
  std::uint64_t lower_bound = 0;       // peak over time of the live bytes; <= proven
  std::uint64_t proven = 0;            // no packing is smaller; <= total
  std::uint64_t steps = 0;             // that the search took
  bool is_optimal() const { return total == proven; }
};

// Steps of inner loops, about a third of a nanosecond each: never seconds, so that a plan does not depend on the
// machine or its load. The greedy orders are O(n^2) at worst; groups of more than 2048 are not searched.
struct Effort {
  std::uint64_t greedy = 60'000'000;
  std::uint64_t search = 200'000'000;
  std::uint64_t enough = 0;         // a total that need not be improved; 0: the lower bound
  std::function<bool()> stop = {};  // asked now and then; true ends all improvement. Then the result may vary
};

// Sizes are padded to the alignment, which total, lower bound and proof include.
Packing pack(std::span<const Interval> intervals, std::uint64_t alignment = 1, const Effort& effort = {});

// Each at a multiple of its own alignment, without padding.
Packing pack_each(std::span<const Interval> intervals, std::span<const std::uint64_t> alignments,
                  const Effort& effort = {});

// Independent check, O(n log n): "" or a sentence that names the rule and the two intervals.
std::string validate(std::span<const Interval> intervals, std::span<const std::uint64_t> offsets, std::uint64_t total,
                     std::uint64_t alignment = 1);

}  // namespace graphrun::plan
