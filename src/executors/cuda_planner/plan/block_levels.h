// block_levels.h: order of the steps that run once in a kernel with block tiles. Some sum all elements of an array to a
// scalar, such as the norm for gradient clipping: each block sums its own elements, all blocks synchronize, and each
// adds the partial sums in the same order. Steps that depend on such a scalar, or overwrite a value that a later level
// reads, belong to that later level.
// Contract: pure functions. Steps of a level keep their order. Arrays computed at one level and read at a later one are
// in the region's scratch. Not here: the code (block_sums.cpp), supported steps (block_costs.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "executors/cuda_planner/print/kernel_frame.h"
#include "graphrun/executor.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

// Whether the call sums all elements of a shared f32 array to a scalar.
bool sums_elements(const TextCall& call);

// Levels of a region, and the resources that it needs for them.
struct BlockLevels {
  std::vector<std::size_t> available;  // first level that can read a step's output; rows, then others
  std::vector<std::size_t> sums;       // number of element sums by level; {} if none
  std::int64_t elements = 0;           // elements of arrays computed after level 0
  std::uint64_t kept_bytes = 0;        // size of arrays that a later level reads
  std::uint64_t shared_bytes(std::uint32_t threads) const;  // per block
  std::uint64_t scratch_bytes(std::uint32_t blocks) const;  // including kept_bytes
};
BlockLevels block_levels(const RegionSignature& region);
std::uint64_t scratch_bytes(std::int64_t elements, DType dtype);  // size of an array there, aligned

// Steps that run once, by level. Includes those before the rows, which run there if they are scalars of level 0.
struct BlockOrder {
  struct OnceStep {
    std::size_t level;
    bool sums_elements;
    bool is_by_element;  // writes or sums an array
    TextCall call;       // if by element: its call, with operand names as of that step
  };
  explicit BlockOrder(const KernelFrame& frame);
  // Runs the scalar steps [first, last) of a level, and names the operands of the others: a later step may overwrite a
  // scalar that they read.
  void run_scalars(OnceText& once, std::uint32_t first, std::uint32_t last, std::size_t level);

  const Phase& phase;
  std::map<std::uint32_t, OnceStep> steps;       // key: index in the phase
  std::vector<std::vector<std::uint32_t>> sums;  // sums of elements, by level
};

}  // namespace graphrun::cuda
