// block_levels.h: in which order the steps that run once go in a kernel with tiles of blocks, where some make a number
// of an array by summing its elements, as the norm is that gradients are clipped by: each block sums those that it has,
// all blocks wait for each other, and every block adds the same parts in the same order. What depends on such a number
// is of a later level, and so is what writes over something that a later level reads.
// Contract: pure functions. Within a level steps keep their order. What one level makes of arrays and a later one reads
// lies in the region's scratch. Leaves to others: the text (block_sums.cpp), which steps can have it (block_costs.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "executors/cuda_planner/scalar_text.h"
#include "graphrun/executor.h"

namespace graphrun::cuda {

// Values are told apart by numbers: places in memory, or who makes them.
struct LevelStep {
  std::vector<std::uint32_t> reads;
  std::uint32_t writes;
  bool sums_elements;
};
// The level of each step, 0 the first.
std::vector<int> block_levels(const std::vector<LevelStep>& steps);

// A number, the sum of all elements of an array of f32 that rows share.
bool sums_elements(const TextCall& call);

// What a region needs for it.
struct BlockLevels {
  std::vector<int> sums;                                    // of elements, by the level that adds them up; {} none
  std::int64_t elements = 0;                                // of arrays that a later level makes
  std::uint64_t kept_bytes = 0;                             // of arrays between levels
  std::uint64_t shared_bytes(std::uint32_t threads) const;  // of a block
  std::uint64_t scratch_bytes(std::uint32_t blocks) const;  // with kept_bytes
};
BlockLevels block_levels(const RegionSignature& region);
std::uint64_t kept_bytes(std::int64_t elements, DType dtype);
std::uint64_t level_parts_bytes(int sums, std::uint32_t blocks);  // of scratch: what blocks have added up

}  // namespace graphrun::cuda
