// launch_order.h: dependencies between the launches of a step, and their order around messages to other ranks.
// Contract: a pure function of the bytes that launches read and write. Two launches keep their order if one of them
// writes bytes that the other accesses, since the plan reuses memory; all others may run at the same time. Time is near
// linear in the number of ranges.
// Not here: definition of a launch (runnable.h), capture and edges (step_graph.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graphrun/program.h"

namespace graphrun::cuda {

struct ByteRange {  // bytes of the arena
  std::uint64_t begin = 0, end = 0;
};
struct LaunchAccess {
  std::vector<ByteRange> reads, writes;                // scratch counts as written
  void add(const Program& program, const Step& step);  // values in registers are ignored
  // Adds the loads, stores and scratch of a region over rows, in addition to the operands of its steps.
  void add(const Program& program, const Region& region);
};

// Returns for each launch the earlier ones that it waits for, latest first, without indirect dependencies.
std::vector<std::vector<std::uint32_t>> launch_order(std::span<const LaunchAccess> launches);

// Returns the sequence of the launches in which those marked as messages begin as early as possible. Launches
// that wait for later messages come later: other work hides the messages. `order` is that of launch_order().
std::vector<std::uint32_t> message_order(std::span<const std::vector<std::uint32_t>> order,
                                         const std::vector<bool>& messages);

}  // namespace graphrun::cuda
