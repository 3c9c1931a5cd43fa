// block_phases.h: partition of the row steps of a region with block tiles into phases, separated by grid barriers. A
// phase computes parts of large products and the elementwise steps on their results, rows of a block, or sums over
// rows. Contract: pure functions of the steps, batch size and number of blocks, shared by plan and code. Not here: the
// code (block_kernel.cpp), the choice (tile_costs.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executors/cuda_planner/print/scalar_text.h"
#include "graphrun/target.h"
#include "kernels/cuda/tile/shapes.h"

namespace graphrun::cuda {

// A row step, and the row step that computes each input; -1 for shared values and inputs from outside the region.
struct BlockStep {
  TextCall call;
  std::vector<int> makers;
};

// Part of a product that a block computes at a time: 16 m by 8 n elements. For rows, m counts rows. For a sum over
// rows, m counts the features of the left factor, or n does if `turned`.
struct ProductTile {
  int m = 1, n = 1;
  bool turned = false;
};

struct BlockProduct {
  int step = 0;
  ProductTile tile;
  std::vector<int> epilogue;  // elementwise steps on the results, in order
  std::int64_t jobs = 0;
};
// Unit of work on a block's rows: a loop over features, which a product may start, or steps that each read whole rows.
struct BlockItem {
  std::vector<int> steps;
  bool loop = true;
};
struct BlockPhase {
  std::vector<BlockProduct> products;  // empty in a phase of rows
  std::vector<BlockItem> rows;         // empty in a phase of products
};
// Sum over rows. If it is not a product, each job computes 32 elements.
struct BlockSum {
  int step = 0;
  bool product = false;
  ProductTile tile = {};
  std::int64_t jobs = 0, cycles = 0;  // cycles: of a job
};

enum class BlockPlace : std::uint8_t {
  unplaced,    // reduced value
  data,        // in the data set
  recomputed,  // from data, by each reader
  row,         // registers, and shared memory if another item of its phase reads it
  arena,       // also in the region's scratch: other phases read it
};
// Output of a row step.
struct BlockValue {
  BlockPlace place = BlockPlace::row;
  int phase = -1;            // computed there; -1: data and recomputed values
  bool shared = false;       // whether it is in shared memory
  std::int64_t stride = 0;   // row stride in the arena, in elements
  std::uint64_t offset = 0;  // in the arena, in bytes
};

struct BlockPlan {
  std::vector<BlockPhase> phases;
  std::vector<BlockSum> sums;      // largest jobs first; scalars, which have no jobs, last
  std::vector<BlockValue> values;  // one per step
  std::uint64_t bytes = 0;         // size of the region's scratch, with the flags of the grid barrier
  std::uint64_t shared_bytes = 0;  // rows, parts of products and sums, and row lookup tables
  std::uint64_t parts_bytes = 0;   // parts of products and sums
  std::int64_t cycles = 0;         // per step of the model
  std::int64_t number_cycles = 0;  // cycles of the block that computes scalar sums

  const BlockValue& value(int step) const { return values[static_cast<std::size_t>(step)]; }
};
// Calls f(k) for the value that readers of value `from` read, or, if it is recomputed, for all that it is made of.
template <class F>
void each_source(const std::vector<BlockStep>& steps, const BlockPlan& plan, int from, const F& f) {
  if (from < 0) return;
  if (plan.value(from).place != BlockPlace::recomputed) return f(from);
  for (const int more : steps[static_cast<std::size_t>(from)].makers) each_source(steps, plan, more, f);
}
BlockPlan block_phases(const std::vector<BlockStep>& steps, std::int64_t capacity, std::uint32_t blocks,
                       std::uint32_t threads, const GpuCosts& costs);
// Plan of a split tile: a single phase of rows with all row steps that fit it. Operands of sums over rows are in
// BlockPlace::arena, here one row of the values that all blocks of a cluster receive, which are not in shared rows.
BlockPlan row_phase(const std::vector<BlockStep>& steps, std::int64_t capacity, const GpuCosts& costs);

// Reason why a step cannot be part of such a plan; "" if it can.
std::string block_fault(const TextCall& call);

// Rows of a shuffled batch are looked up in a table in shared memory, which covers several steps of a small batch
// (kernels/cuda/tile/picks.h). Rows of a batch above the maximum are computed one by one.
inline constexpr std::int64_t kMinLookedUp = tile::kPickedRows, kMaxLookedUp = 8192;
// Shared memory of those tables, at most: one per step of data. Identical steps share one.
std::uint64_t lookup_bytes(const std::vector<BlockStep>& steps, std::int64_t capacity);
// Stride of a block's rows in shared memory, in elements, chosen to avoid bank conflicts.
std::int64_t shared_stride(std::int64_t features);
// Grid barrier flags at the start of the region's scratch, before the values.
inline constexpr std::uint64_t kBlockFlagBytes = tile::kGridBytes;

}  // namespace graphrun::cuda
