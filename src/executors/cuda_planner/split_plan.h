// split_plan.h: how a region runs with split tiles: a cluster has a group of rows, each of its blocks a slice of the
// features of wide data, of the weights that multiply them and of all that an optimizer has beside those. Which steps
// these are, what blocks of a cluster send each other, and what is summed over clusters.
// Contract: pure functions of the steps, the size of the batch and the tiling; the plan of a region and the text of its
// kernel ask for the same. Leaves to others: steps on a block's own rows (block_phases.h), the text (split_kernel.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executors/cuda_planner/block_phases.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

inline constexpr std::int64_t kMostSplitColumns = 32;  // of weights that multiply wide data

// A product of wide data and weights: results [at, at + columns) of a row.
struct SplitProduct {
  int step = 0;
  std::int64_t at = 0, columns = 0;
};
// Numbers [at, at + numbers) of a block's sums over rows: of its slice of the transpose of the data times narrow values
// (`wide`), or the same in all blocks of a cluster.
struct SplitSum {
  int step = 0;
  bool wide = false;
  std::int64_t at = 0, numbers = 0;
};

struct SplitPlan {
  std::string fault;                     // why there is none; "" if there is one
  int data = -1;                         // the step that selects the wide data; -1: rows from outside
  std::int64_t features = 0, slice = 0;  // of them, and of a block
  std::int64_t group = 0;                // rows of a cluster,
  std::int64_t turns = 1, own = 0;       // which it has so many times, `own` of them in each block
  std::vector<SplitProduct> products;
  std::int64_t parts = 0;     // results of a row, rounded up to 4
  std::int64_t gathered = 0;  // numbers of a row that all blocks get, rounded up to 4
  std::vector<SplitSum> sums;
  std::int64_t values = 0;         // of all sums
  BlockPlan block;                 // of own rows
  std::uint64_t shared_bytes = 0;  // without what all rows share
  std::uint64_t scratch_bytes = 0;
  std::int64_t cycles = 0;

  std::int64_t turn_rows(const StepTiling& tiling) const { return own * tiling.cluster; }
  bool is_wide(int product) const;  // a step that is one of `products`
};
SplitPlan split_plan(const std::vector<BlockStep>& steps, std::int64_t capacity, const StepTiling& tiling);

}  // namespace graphrun::cuda
