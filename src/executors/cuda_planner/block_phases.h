// block_phases.h: how the row steps of a region with tiles of blocks fall into phases, between which all blocks wait
// for each other: parts of large products, with the steps on their results that follow; rows of a block; sums over
// rows. Contract: pure functions of the steps, the size of the batch and the number of blocks; the plan of a region and
// the text of its kernel ask for the same. Leaves to others: the text (block_kernel.cpp), the choice (step_plan.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executors/cuda_planner/scalar_text.h"

namespace graphrun::cuda {

// A row step, and which row step makes each input: -1 what all rows share, and what comes from outside.
struct BlockStep {
  TextCall call;
  std::vector<int> makers;
};

// The part of a product that a block makes at a time: 16 m by 8 n numbers. Of a sum over rows the left factor's
// features are m, or n where it is turned; of rows these are m.
struct ProductTile {
  int m = 1, n = 1;
  bool turned = false;
};

struct BlockProduct {
  int step = 0;
  ProductTile tile;
  std::vector<int> epilogue;  // elementwise steps on its results, in order
  std::int64_t jobs = 0;
};
// Of a block's rows: a loop over features, which a product may begin; or steps that each read whole rows.
struct BlockItem {
  std::vector<int> steps;
  bool loop = true;
};
struct BlockPhase {
  std::vector<BlockProduct> products;  // of a phase of products,
  std::vector<BlockItem> rows;         // or of one of rows
};
// Of a reduced value. Where it is no product, 32 numbers are a job.
struct BlockSum {
  int step = 0;
  bool product = false;
  ProductTile tile;
  std::int64_t jobs = 0;
};

enum class BlockPlace : std::uint8_t {
  nowhere,  // of a reduced value
  data,     // where the data lie
  remade,   // made of data by whoever reads it
  row,      // registers, and shared memory where another item of its phase reads it
  arena,    // its scratch, too: other phases read it
};

struct BlockPlan {
  std::vector<BlockPhase> phases;
  std::vector<BlockSum> sums;          // the largest jobs first; those of one number last, which have no jobs
  std::vector<BlockPlace> places;      // of each step's output
  std::vector<bool> shared;            // it is in shared memory
  std::vector<std::int64_t> strides;   // of rows in the arena: numbers
  std::vector<std::uint64_t> offsets;  // there: bytes
  std::uint64_t bytes = 0;             // of all
  std::uint64_t shared_bytes = 0;      // of rows, parts of products, and rows that are looked up
  std::int64_t cycles = 0;             // of a step of the model
  std::int64_t number_cycles = 0;      // of the block that sums to single numbers
};
BlockPlan block_phases(const std::vector<BlockStep>& steps, std::int64_t capacity, std::uint32_t blocks,
                       std::uint32_t threads);
// Of a split tile: all row steps in one phase of rows, where they find their way into it. What sums over rows read is
// in BlockPlace::arena, which stands for what all blocks of a cluster get: `offsets` count numbers of a row there.
BlockPlan row_phase(const std::vector<BlockStep>& steps, std::int64_t capacity);

// Why there is no such plan: of one step; "" if there is one.
std::string block_fault(const BlockStep& step);

// Computed feature by feature (feature_text).
bool is_mapped(const TextCall& call);
// Rows of a shuffled batch are looked up in a table of shared memory, which holds those of several steps of a small
// batch (kernels/cuda/tile/picks.h); of a larger batch each by itself.
inline constexpr std::int64_t kLeastLookedUp = 2048, kMostLookedUp = 8192;
// Of row b of a block in shared memory: numbers, so that lanes do not meet in a bank.
std::int64_t shared_stride(std::int64_t features);
// Of the arena's scratch: what blocks wait at for each other, before values.
inline constexpr std::uint64_t kBlockFlagBytes = 128;
std::uint64_t product_bytes(const ProductTile& tile, std::uint32_t threads);  // of shared memory
std::uint64_t row_product_bytes(std::int64_t results, std::uint32_t threads);

}  // namespace graphrun::cuda
