// element_kernels.h: source of one kernel for a region over elements. Each value is computed once, in a register; only
// those with a place in the arena are stored.
// Contract: a pure function of the Program; needs no device. The source compiles under NVRTC with device_sources.h and
// gives the bits of elementwise.cuh. Not here: choice of the steps of a region (src/compiler), compiling (nvrtc.h),
// launching.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/program.h"
#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

struct ElementKernel {
  std::string source;              // defines `extern "C" __global__ void NAME(Pointers)`, without includes
  std::vector<BufferId> pointers;  // buffers whose addresses form the kernel's only parameter
  Grid grid;
  std::uint32_t threads = 0;
};
ElementKernel element_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region,
                             const Machine& machine);

// Code before the kernels of a module.
extern const char* const kElementPrelude;

}  // namespace graphrun::cuda
