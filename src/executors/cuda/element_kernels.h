// element_kernels.h: the source of one kernel for a region over elements: each value is computed once, in a register,
// and only those that have a place in the arena are stored.
// Contract: a pure function of the Program; needs no device. The text compiles under NVRTC with device_sources.h and
// gives the bits of elementwise.cuh. Leaves to others: which steps are a region (src/compiler), compiling (nvrtc.h),
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
  std::string source;              // of `extern "C" __global__ void NAME(Pointers)`, without includes
  std::vector<BufferId> pointers;  // whose addresses are the kernel's one parameter
  Grid grid;
  std::uint32_t threads = 0;
};
ElementKernel element_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region,
                             const Machine& machine);

// What precedes the kernels of a module.
extern const char* const kElementPrelude;

}  // namespace graphrun::cuda
