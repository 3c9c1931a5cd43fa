// block_sums.h: the text of the last phase of a kernel with tiles of blocks: sums over rows, and the steps that run
// once. Contract: the text runs once in each step, after block_rows(). An element of an array is computed by the block
// that has its sum over rows, through all steps on it; single numbers by all, from sums of the last block alone where
// nothing but numbers needs them. Levels (block_levels.h) come one after the other. Leaves to others: steps on numbers
// (once_text.h).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "executors/cuda_planner/block_values.h"

namespace graphrun::cuda {

// The steps that run once, by level; those before rows, too, which do so if they are numbers of level 0.
struct BlockOrder {
  BlockOrder(const Program& program, const Phase& phase, const Region& region, const Places& places);
  int count = 1;
  std::map<std::uint32_t, int> levels;       // by step of the phase
  std::map<std::uint32_t, TextCall> before;  // of level 0, of arrays: with the names of operands before rows
  bool sums_elements(std::uint32_t step) const;
  std::vector<std::uint32_t> sums_of(int level) const;

 private:
  std::vector<std::uint32_t> sums_;
};

BlockText block_sums(BlockValues& values, const BlockOrder& order);

}  // namespace graphrun::cuda
