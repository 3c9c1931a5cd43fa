// block_sums.h: code for the last phase of a kernel with block tiles: sums over rows, and the steps that run once,
// level by level (block_levels.h). Contract: the code runs once per step, after block_rows(). The block that computes
// an array element's sum over rows runs all steps on that element. Every block computes scalars; their sums over rows
// are computed by the last block alone if only scalars need them. Not here: steps on scalars (once_text.h).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "executors/cuda_planner/block_values.h"

namespace graphrun::cuda {

// Steps that run once, by level. Includes those before the rows, which run there if they are scalars of level 0.
struct BlockOrder {
  BlockOrder(const Program& program, const Phase& phase, const Region& region, const Places& places);
  int count = 1;
  std::map<std::uint32_t, int> levels;       // level by index of the step in the phase
  std::map<std::uint32_t, TextCall> before;  // level 0 steps deferred past the rows, with operand names before them
  bool sums_elements(std::uint32_t step) const;
  std::vector<std::uint32_t> sums_of(int level) const;

 private:
  std::vector<std::uint32_t> sums_;
};

BlockText block_sums(BlockValues& values, const BlockOrder& order);

}  // namespace graphrun::cuda
