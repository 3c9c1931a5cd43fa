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

#include "executors/cuda_planner/print/once_text.h"
#include "graphrun/executor.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

// Values are identified by number: storage root or producing step.
struct LevelStep {
  std::vector<std::uint32_t> reads;
  std::uint32_t writes;
  bool sums_elements;
};
// Level of each step, starting at 0.
std::vector<std::size_t> block_levels(const std::vector<LevelStep>& steps);

// Whether the call sums all elements of a shared f32 array to a scalar.
bool sums_elements(const TextCall& call);

// Resources that a region needs for its levels.
struct BlockLevels {
  std::vector<std::size_t> sums;                            // number of element sums by level; {} if none
  std::int64_t elements = 0;                                // elements of arrays computed after level 0
  std::uint64_t kept_bytes = 0;                             // size of arrays that a later level reads
  std::uint64_t shared_bytes(std::uint32_t threads) const;  // per block
  std::uint64_t scratch_bytes(std::uint32_t blocks) const;  // including kept_bytes
};
BlockLevels block_levels(const RegionSignature& region);
std::uint64_t kept_bytes(std::int64_t elements, DType dtype);
std::uint64_t level_parts_bytes(std::size_t sums, std::uint32_t blocks);  // scratch for the partial sums of blocks

// Steps that run once, by level. Includes those before the rows, which run there if they are scalars of level 0.
struct BlockOrder {
  BlockOrder(const Program& program, const Phase& phase, const Region& region, const Places& places);
  std::map<std::uint32_t, std::size_t> levels;   // level by index of the step in the phase
  std::vector<std::vector<std::uint32_t>> sums;  // sums of elements, by level
  std::map<std::uint32_t, TextCall> before;      // level 0 steps deferred past the rows, with operand names before them
  bool sums_elements(std::uint32_t step) const;
};

}  // namespace graphrun::cuda
