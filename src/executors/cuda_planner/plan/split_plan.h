// split_plan.h: plan of a region with split tiles. A cluster has a group of rows. Each of its blocks has a slice of the
// features of wide data, of the weights that multiply them, and of the optimizer states of those weights. The plan
// lists these steps, the values sent within a cluster, and the sums over clusters.
// Contract: pure functions of the steps, batch size and tiling, shared by the plan of a region and the code of its
// kernel. Not here: steps on a block's own rows (block_phases.h), the code (split_kernel.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executors/cuda_planner/plan/block_phases.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

inline constexpr std::int64_t kMaxSplitColumns = 32;  // columns of weights that multiply wide data

// Product of wide data and weights: results [at, at + columns) of a row.
struct SplitProduct {
  int step = 0;
  std::int64_t at = 0, columns = 0;
};
// Elements [at, at + numbers) of a block's sums over rows: its slice of the transposed data times narrow values
// (`wide`), or values that are the same in all blocks of a cluster.
struct SplitSum {
  int step = 0;
  bool wide = false;
  std::int64_t at = 0, numbers = 0;
};

struct SplitPlan {
  std::string fault;                     // reason why there is no plan; "" if there is one
  int data = -1;                         // step that selects the wide data; -1: rows from outside
  std::int64_t features = 0, slice = 0;  // features of the wide data; features per block
  std::int64_t group = 0;                // rows per cluster
  std::int64_t turns = 1, own = 0;       // passes over the group; rows per block in each pass
  std::vector<SplitProduct> products;
  std::int64_t parts = 0;     // results per row, rounded up to 4
  std::int64_t gathered = 0;  // elements of a row that all blocks receive, rounded up to 4
  std::vector<SplitSum> sums;
  std::int64_t values = 0;         // elements of all sums
  BlockPlan block;                 // plan of own rows
  std::uint64_t shared_bytes = 0;  // without values shared by all rows
  std::uint64_t scratch_bytes = 0;
  std::int64_t cycles = 0;

  std::int64_t turn_rows(const StepTiling& tiling) const { return own * tiling.cluster; }
  bool is_wide(int product) const;  // whether it is the step of one of `products`
};
SplitPlan split_plan(const std::vector<BlockStep>& steps, std::int64_t capacity, const StepTiling& tiling,
                     const GpuCosts& costs);

}  // namespace graphrun::cuda
