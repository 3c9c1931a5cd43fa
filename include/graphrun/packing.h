// packing.h: dynamic storage allocation: offsets for memory blocks with live ranges, as in the memory plan of a model,
// for any list of blocks. Contract: a pure function. Offsets are multiples of the alignment, and blocks with
// overlapping live ranges do not overlap in memory. Live ranges are half-open: [lower, upper). Without `stop`, the
// result depends only on the input. Thread-safe. Not here: reading and writing lists of blocks (`graphrun plan
// --buffers`).
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
  std::int64_t lower = 0, upper = 0;  // live range, in any unit of time; lower < upper
  std::uint64_t size = 0;             // in bytes or any other unit; may be 0
  std::uint64_t alignment = 1;        // alignment of the offset; >= 1
};

struct BlockPacking {
  std::vector<std::uint64_t> offsets;  // one per block
  std::uint64_t height = 0;            // end of the highest block
  std::uint64_t lower_bound = 0;       // peak of the live bytes
  std::uint64_t proven = 0;            // proven minimum of the height; lower_bound <= proven <= height
  bool is_optimal() const { return height == proven; }
};

struct PackingSearch {
  std::optional<std::uint64_t> capacity = {};  // stop at this height (default: search for the minimum)
  // Limit on inner-loop steps, of which a machine runs some billions per second. At the limit, the search returns the
  // best packing so far.
  std::uint64_t steps = 200'000'000;
  std::function<bool()> stop = {};  // polled some hundred times per second; true ends the search
};

// Throws Error (kind input, code "packing.block") if a live range ends before it begins, an alignment is 0, or the sum
// of the sizes needs more than 63 bits.
GRAPHRUN_API BlockPacking pack_blocks(std::span<const BlockLife> blocks, const PackingSearch& search = {});

// Checks a packing independently of pack_blocks(). Returns "", or a sentence that names the broken rule and the blocks,
// counted from 0.
GRAPHRUN_API std::string check_packing(std::span<const BlockLife> blocks, const BlockPacking& packing);

}  // namespace graphrun
