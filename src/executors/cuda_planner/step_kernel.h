// step_kernel.h: the source of the kernel that runs a region over rows: whole training steps where the region is all of
// a phase. One line of text a step, with its name; all algorithms are in src/kernels/cuda/tile.
// Contract: a pure function of the Program; needs no device. What all rows share is in registers (numbers) or in the
// shared memory of each block for the whole launch; block 0 writes it back at the end. The kernel is told how many
// times to run the region. Its scratch is zero when it begins.
// Leaves to others: which steps are a region (src/compiler, step_plan.h), compiling and launching (executors/cuda).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/program.h"

namespace graphrun::cuda {

struct StepKernel {
  std::string name;
  std::string source;               // of `extern "C" __global__ void NAME(Arguments<N>)`, with what it includes
  std::vector<std::string> pieces;  // the same in sources to be compiled side by side and linked; none: in one
  std::vector<BufferId> pointers;   // whose addresses it is given
};
StepKernel step_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region);

// Of a region over rows in the program's phase.
std::string step_kernel_name(const Program& program, const Phase& phase, const Region& region);

}  // namespace graphrun::cuda
