// tile.h: row steps of a region on one tile. Values are stored feature-major, so that 16 rows (8 of f64) form the lanes
// of a vector.
// Contract: element (feature f, row r) of a tile value is at offset f * stride + r; stride is a multiple of 16. Lanes
// from `rows` on may hold anything: elementwise ops process them, reductions over rows and stores skip them. A row
// value with k rows per sample is stored as k features. Results are bitwise equal to the whole-batch kernels, except
// reductions over rows, which follow the order of tiles and partitions. Calling a step does not allocate; creating one
// does. Leaves to others: tiles, partitions and threads (executors/cpu/region_runner.h), the ISA's loops (isa.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graphrun/params.h"
#include "graphrun/types.h"
#include "kernels/cpu/cpu_kernels.h"

namespace graphrun {
struct MinibatchParams;
}

namespace graphrun::cpu {

// The current tile.
struct TileContext {
  std::byte* tile = nullptr;          // scratch
  std::byte* accumulators = nullptr;  // the partition's accumulators
  std::byte* lanes = nullptr;         // a vector per accumulator number for sums; null: they go to `accumulators`
  std::int64_t first = 0;             // sample of the batch in lane 0
  std::int64_t rows = 0;              // samples in this tile, at least 1
  std::int64_t stride = 0;
};

using TileStep = std::function<void(const TileContext& tile)>;

// Data set stored as vectors of rows; each batch starts a new vector.
struct DataVectors {
  const std::byte* data = nullptr;      // null: none
  const std::uint64_t* step = nullptr;  // selects batch *step % batches; null: a single batch
  std::uint64_t batches = 1;
  std::uint64_t vector_bytes = 0, batch_bytes = 0;
};
DataVectors whole_data(const std::byte* data, std::int64_t features);
DataVectors minibatch_data(const std::byte* data, std::int64_t features, const std::byte* step,
                           const MinibatchParams& params);

// An operand with rows is in the tile at `offset`, or in `vectors`: products read those in place, other ops only if the
// value has one feature. An operand without rows is in the arena at `address`. An output without rows is a reduction:
// it is stored in the accumulators at `offset`, a sum in the corresponding lanes if the partition has lanes.
struct TileOperand {
  TensorType type;
  std::uint64_t offset = 0;
  const std::byte* address = nullptr;
  DataVectors vectors = {};
};

// Steps fused into a matmul; results are bitwise equal to running them separately.
struct TileEpilogue {
  const std::byte* bias = nullptr;  // added to each row
  std::optional<Op> op = {};        // applied next, if set: see epilogue_input()
  TileOperand with = {};            // the other operand of a binary op, of the output's type
};

struct TileCall {
  Op op;
  const Params* params = nullptr;
  std::vector<TileOperand> inputs;
  TileOperand output;
  TileEpilogue epilogue = {};
  // For a matmul over rows whose partition has lanes: accumulator offset of the sum over rows of its second operand,
  // which it then also computes, as the step `sum` would.
  std::optional<std::uint64_t> sums_at = {};
  // Offset in the thread's scratch of a dropout mask, one byte per element. mask_known: an earlier step of the tile
  // (the forward pass) has already drawn the mask.
  std::optional<std::uint64_t> mask_at = {};
  bool mask_known = false;
};

// Index of the input of `op` that may be a product with this op fused into it; -1: not supported.
int epilogue_input(Op op);

// Returns the step, or null and sets `reason`. Support does not depend on offsets and addresses.
TileStep make_tile_step(const TileCall& call, Isa isa, std::string& reason);

// Copies between the arena (row-major, whole batch) or vectors of a data set, and the tile.
TileStep make_tile_load(const TileOperand& to, const std::byte* arena, const DataVectors& vectors, Isa isa);
TileStep make_tile_store(std::byte* arena, const TileOperand& from, Isa isa);

// Converts `rows` rows of `width` floats to and from vectors of 16 rows; every `block` rows start a new vector.
void rows_to_vectors(float* to, const float* from, std::int64_t rows, std::int64_t width, std::int64_t block);
void vectors_to_rows(float* to, const float* from, std::int64_t rows, std::int64_t width, std::int64_t block);
// Overwrites rows [first, first + rows) of existing vectors.
void set_rows_of_vectors(float* to, const float* from, std::int64_t first, std::int64_t rows, std::int64_t width,
                         std::int64_t block);

}  // namespace graphrun::cpu
