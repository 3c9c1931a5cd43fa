// tight.h: the best packing of a group that no moment divides: greedy first, then exact searches under a ceiling.
// Contract: never worse than greedy. `proven` is what exhausted searches prove, at least the peak.
#pragma once

#include <span>

#include "compiler/packing/block.h"

namespace graphrun::plan {

struct TightPacking {
  Solution solution;
  Bytes proven = 0;  // no packing is smaller
};

// Stops where a packing of at most `goal`, or of the peak, is found.
TightPacking pack_tightly(std::span<const Block> blocks, Bytes goal, Meter& greedy, Meter& search);

}  // namespace graphrun::plan
