// step_kernel.h: source of the kernels that run regions over rows: entire training steps if a region covers a phase.
// The source has one line per step, with its name; all algorithms are in src/kernels/cuda/tile.
// Contract: pure functions of the Program; need no device. Values shared by all rows are in registers (scalars) or in
// the shared memory of each block for the whole launch; block 0 writes them back at the end. An argument sets how many
// times the region runs. The scratch must be zero when the kernel begins.
// Not here: choice of a region's steps (src/compiler, tile_costs.h), compiling (executors/cuda/nvrtc.h) and launching.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/program.h"

namespace graphrun::cuda {

struct StepKernel {
  std::string name;
  std::string text;                 // defines `extern "C" __global__ void NAME(Arguments<N>)`; follows step_prelude()
  std::vector<std::string> pieces;  // the same as sources to compile in parallel and link; empty if not split
  std::vector<BufferId> pointers;   // buffers whose addresses the kernel receives
  std::uint32_t threads = 0;        // block size
};
StepKernel step_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region);

// Name of the kernel of a region over rows in the program's phase.
std::string step_kernel_name(const Program& program, const Phase& phase, const Region& region);

// Code before the kernels.
std::string step_prelude(MathMode math);
// All step kernels of a program as one text; "" if it has no region over rows for a GPU.
std::string step_source(const Program& program);

// The kernels with complete sources and pieces.
std::vector<StepKernel> step_sources(const Program& program);

}  // namespace graphrun::cuda
