// element_grid.h: the blocks of one chain of elementwise steps in a generated kernel.
// Contract: a pure function of (elements, machine numbers), asked before memory is laid out and again for the text.
// Leaves to others: the text (executors/cuda/element_kernels.h).
#pragma once

#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

inline constexpr std::uint32_t kElementThreads = 256;
inline constexpr std::uint64_t kPacked = 1u << 16;  // before that many elements, more threads are faster

struct ElementGrid {
  std::uint32_t width = 1;  // elements that a thread takes at a time
  std::uint32_t blocks = 0;
};
inline ElementGrid element_grid(std::uint64_t elements, const Machine& machine) {
  const std::uint32_t width = elements >= kPacked ? 4 : 1;
  return {width, linear_grid(machine, (elements + width - 1) / width, kElementThreads).x};
}

}  // namespace graphrun::cuda
