// packing.h: blocks of memory, each with a life, placed one beside the other: dynamic storage allocation, as plans of
// models use it, for any list of blocks.
// Contract: a pure function; offsets are multiples of their alignment, and blocks whose lives meet do not overlap.
// Lives are half-open: [lower, upper). Without `stop` the answer depends on the input alone. Safe from any thread.
// Leaves to others: reading and writing lists (`graphrun plan --buffers`).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graphrun/export.h"

namespace graphrun {

struct BlockLife {
  std::int64_t lower = 0, upper = 0;  // of time, in any unit; lower < upper
  std::uint64_t size = 0;             // bytes, or any unit; 0 is allowed
  std::uint64_t alignment = 1;        // of its offset; >= 1
};

struct BlockPacking {
  std::vector<std::uint64_t> offsets;  // one a block
  std::uint64_t height = 0;            // end of the highest block
  std::uint64_t lower_bound = 0;       // the most bytes that live at one time
  std::uint64_t proven = 0;            // no packing is lower; lower_bound <= proven <= height
  bool is_optimal() const { return height == proven; }
};

struct PackingSearch {
  std::optional<std::uint64_t> capacity = {};  // a height that need not be improved; none: as low as can be
  // Steps of inner loops, some billions a second; after them the best packing so far is returned.
  std::uint64_t steps = 200'000'000;
  std::function<bool()> stop = {};  // asked some hundred times a second; true: the same. May come from a clock
};

// Throws Error (kind input, code "packing.block") for lives that end before they begin, alignments of 0, and sizes that
// add up to more than 63 bits.
GRAPHRUN_API BlockPacking pack_blocks(std::span<const BlockLife> blocks, const PackingSearch& search = {});

// An independent check: "", or a sentence that names the rule and the blocks, counted from 0.
GRAPHRUN_API std::string check_packing(std::span<const BlockLife> blocks, const BlockPacking& packing);

}  // namespace graphrun
