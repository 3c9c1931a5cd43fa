// element_grid.h: the grid of one chain of elementwise steps in a generated kernel.
// Contract: a pure function of (elements, machine parameters), called before memory layout and again for the source
// text. Leaves to others: the source text (executors/cuda/element_kernels.h).
#pragma once

#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

inline constexpr std::uint32_t kElementThreads = 256;
inline constexpr std::uint64_t kPacked = 1u << 16;  // with fewer elements, more threads are faster

struct ElementGrid {
  std::uint32_t width = 1;  // elements per thread at a time
  std::uint32_t blocks = 0;
};
inline ElementGrid element_grid(std::uint64_t elements, const Machine& machine) {
  const std::uint32_t width = elements >= kPacked ? 4 : 1;
  return {width, linear_grid(machine, (elements + width - 1) / width, kElementThreads).x};
}

}  // namespace graphrun::cuda
