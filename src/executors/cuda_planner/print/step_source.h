// step_source.h: source of all step kernels of a Program, as one text for the compiler.
// Contract: a pure function of the Program; needs no device. Empty if the Program has no region over rows for a GPU.
// Not here: each kernel (step_kernel.h), compiling (executors/cuda/nvrtc.h).
#pragma once

#include <string>
#include <vector>

#include "graphrun/program.h"

namespace graphrun::cuda {

// Code before the kernels.
std::string step_prelude(MathMode math);
std::string step_source(const Program& program);

// Source of one kernel, for parallel compilation. `pieces`, if any, are also compiled in parallel and link to the same
// kernel. `threads` is the block size.
struct StepSource {
  std::string kernel, text;
  std::vector<std::string> pieces;
  std::vector<BufferId> pointers;  // StepKernel::pointers
  std::uint32_t threads = 0;
};
std::vector<StepSource> step_sources(const Program& program);

}  // namespace graphrun::cuda
