// elementwise_run.h: steps one after the other that go through as many elements each, block by block: what one of them
// writes the next reads from the nearest cache. Of what is no sweep (sweeps.h): steps with rows, phases without states.
// Contract: bits and values are those of the steps one by one; nothing is allocated in run(). Operands are read as the
// steps have them then. Leaves to others: small steps, whose buffers stay in a cache anyway; regions and sweeps.
#pragma once

#include <cstdint>
#include <vector>

#include "executors/cpu/bound_step.h"

namespace graphrun {

// Where the run ends that begins at step `first`; first + 1 where there is none. No further than `limit`.
std::uint32_t end_of_run(const std::vector<BoundStep>& steps, std::uint32_t first, std::uint32_t limit);

void run_together(const std::vector<BoundStep>& steps, std::uint32_t first, std::uint32_t last);

}  // namespace graphrun
