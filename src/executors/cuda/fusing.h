// fusing.h: a launch of several steps as the source of one kernel and the buffers that it is given.
// Contract: a pure function of the Program and the launch; needs no device.
// Leaves to others: the text (kernels/cuda/fused.h), compiling (nvrtc.h).
#pragma once

#include <string_view>
#include <vector>

#include "executors/cuda/grouping.h"
#include "graphrun/program.h"
#include "kernels/cuda/fused.h"

namespace graphrun::cuda {

struct FusedLaunch {
  FusedKernel kernel;
  std::vector<BufferId> operands;  // whose addresses are the pointers of the kernel
};
FusedLaunch fuse_launch(const Program& program, const Phase& phase, const Launch& launch, std::string_view name,
                        const Machine& machine);

}  // namespace graphrun::cuda
