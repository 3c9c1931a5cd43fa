// launch_order.h: which launches of a step wait for which.
// Contract: a pure function of the bytes that launches read and write. Two launches run in the order given wherever one
// of them writes what the other one touches, since the plan lays values over each other; all others may run at once.
// Time is near linear in the number of ranges.
// Leaves to others: what a launch is (runnable.h), capture and edges (step_graph.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graphrun/program.h"

namespace graphrun::cuda {

struct ByteRange {  // of the arena
  std::uint64_t begin = 0, end = 0;
};
struct LaunchAccess {
  std::vector<ByteRange> reads, writes;                // scratch is written
  void add(const Program& program, const Step& step);  // what lies in registers is not touched
  // What a region over rows loads and stores beside its steps' operands, and its scratch.
  void add(const Program& program, const Region& region);
};

// For each launch the earlier ones that it waits for, latest first, without those that these wait for themselves.
std::vector<std::vector<std::uint32_t>> launch_order(std::span<const LaunchAccess> launches);

}  // namespace graphrun::cuda
