// tight.h: the best packing of a group that cannot be split in time: greedy first, then exact searches under a ceiling.
// Contract: never worse than greedy. `proven` is the bound proven by exhausted searches, at least the peak.
#pragma once

#include <span>

#include "compiler/packing/block.h"

namespace graphrun::plan {

struct TightPacking {
  Solution solution;
  Bytes proven = 0;  // proven minimum of the total
};

// Stops at a packing of at most `goal`, or of the peak.
TightPacking pack_tightly(std::span<const Block> blocks, Bytes goal, Meter& greedy, Meter& search);

}  // namespace graphrun::plan
