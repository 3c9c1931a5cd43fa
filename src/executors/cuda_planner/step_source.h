// step_source.h: the source of all step kernels of a Program, as one text for the compiler.
// Contract: a pure function of the Program; needs no device. Empty where no region over rows is a GPU's.
// Leaves to others: each kernel (step_kernel.h), compiling (executors/cuda/nvrtc.h).
#pragma once

#include <string>
#include <vector>

#include "graphrun/program.h"

namespace graphrun::cuda {

// What precedes the kernels.
std::string step_prelude(MathMode math);
std::string step_source(const Program& program);

// The same, each kernel by itself: they are compiled side by side. One of `pieces` is so, too; together they are the
// same kernel, of so many threads a block.
struct StepSource {
  std::string kernel, text;
  std::vector<std::string> pieces;
  std::vector<BufferId> pointers;  // StepKernel::pointers
  std::uint32_t threads = 0;
};
std::vector<StepSource> step_sources(const Program& program);

}  // namespace graphrun::cuda
