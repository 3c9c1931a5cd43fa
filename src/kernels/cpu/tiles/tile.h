// tile.h: row steps of a region on one tile: values lie feature-major, so that 16 rows are the lanes of a vector.
// Contract: feature f of row r of a tile value lies at (f * stride + r) elements; stride is a multiple of 16, and lanes
// from `rows` on hold anything: elementwise work runs over them, reductions over rows and stores leave them out. A row
// of k rows a sample is k features of the sample. Row values have the bits of the kernels that run over whole batches,
// but for reductions over rows, whose order is that of tiles and partitions. Calling a step allocates
// nothing; making one does.
// Leaves to others: tiles, partitions and threads (executors/cpu/region_runner.h), the ISA's loops (tile_isa.h).
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

// The tile in hand.
struct TileContext {
  std::byte* tile = nullptr;          // scratch
  std::byte* accumulators = nullptr;  // of the partition
  float* lanes = nullptr;  // of the partition: 16 for each number of the accumulators; sums over rows go there
  std::int64_t first = 0;  // sample of the batch in lane 0
  std::int64_t rows = 0;   // samples in this tile, at least 1
  std::int64_t stride = 0;
};

using TileStep = std::function<void(const TileContext& tile)>;

// A data set in vectors of rows, each batch of which begins a vector.
struct DataVectors {
  const std::byte* data = nullptr;      // null: none
  const std::uint64_t* step = nullptr;  // of batch number *step % batches; null: all is one batch
  std::uint64_t batches = 1;
  std::uint64_t vector_bytes = 0, batch_bytes = 0;
};
DataVectors whole_data(const std::byte* data, std::int64_t features);
DataVectors minibatch_data(const std::byte* data, std::int64_t features, const std::byte* step,
                           const MinibatchParams& params);

// An operand with rows lies in the tile at `offset`, or in `vectors`, which products read in place, and others when the
// value has one feature. One without rows lies at `address` in the arena. An output without rows is reduced: it lies in
// the accumulators at `offset`, a sum in the lanes of these numbers where the partition has lanes.
struct TileOperand {
  TensorType type;
  std::uint64_t offset = 0;
  const std::byte* address = nullptr;
  DataVectors vectors = {};
};

// What a matmul also does, in place of the steps that would follow: the bits are theirs.
struct TileEpilogue {
  const std::byte* bias = nullptr;  // added to each row
  std::optional<Op> op = {};        // then this, where there is one: see epilogue_input()
  TileOperand with = {};            // the other operand of an op of two, of the type of the output
};

struct TileCall {
  Op op;
  const Params* params = nullptr;
  std::vector<TileOperand> inputs;
  TileOperand output;
  TileEpilogue epilogue = {};
  // Of a matmul over the rows whose partitions have lanes: where the accumulators of its second operand's sum over rows
  // lie, which it then adds to as the step `sum` does.
  std::optional<std::uint64_t> sums_at = {};
  // Offset in the thread's scratch of a dropout's mask, one byte per element, and whether an earlier step of the tile
  // has drawn the mask, as the forward pass does for the backward pass.
  std::optional<std::uint64_t> mask_at = {};
  bool mask_known = false;
};

// Which input of `op` a product of rows may be that does this op too; -1: none.
int epilogue_input(Op op);

// The step, or none and why not. Whether there is one does not depend on offsets and addresses.
TileStep make_tile_step(const TileCall& call, Isa isa, std::string& reason);

// Between the arena (row-major, whole batch; or vectors of a data set) and the tile.
TileStep make_tile_load(const TileOperand& to, const std::byte* arena, const DataVectors& vectors, Isa isa);
TileStep make_tile_store(std::byte* arena, const TileOperand& from, Isa isa);

// `rows` rows of `width` floats to and from vectors of 16 rows, a new one from every `block` rows on.
void rows_to_vectors(float* to, const float* from, std::int64_t rows, std::int64_t width, std::int64_t block);
void vectors_to_rows(float* to, const float* from, std::int64_t rows, std::int64_t width, std::int64_t block);
// Rows [first, first + rows) among those that are there.
void set_rows_of_vectors(float* to, const float* from, std::int64_t first, std::int64_t rows, std::int64_t width,
                         std::int64_t block);

}  // namespace graphrun::cpu
