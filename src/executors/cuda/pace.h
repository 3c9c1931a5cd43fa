// pace.h: how many steps one launch runs, from shapes and machine numbers alone.
// Contract: pure; a launch takes about kLaunchSeconds, so that a run can be interrupted and other work on the device is
// not held up; the pace changes no result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graphrun/program.h"

namespace graphrun::cuda {

struct Pace {
  std::uint32_t unroll = 1;            // steps in the body of the block loop of a graph
  std::uint64_t steps_per_launch = 1;  // at most; a multiple of unroll
};

// `launches`: kernels of one step.
Pace pace_of(const Program& program, const Phase& phase, std::size_t launches);

}  // namespace graphrun::cuda
