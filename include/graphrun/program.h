// program.h: the complete description of a model for an executor.
// Contract: plain data without a pointer into the graph; prints (to_string), compares, and can be written by hand.
// Offsets and sizes are bytes from the start of the one arena; shapes and addresses never change during a run.
// Rules a Program keeps (check() throws Error, kind input, code "program.rule", for the first one broken):
//   - kinds, dtypes and shapes of buffers are valid, and a buffer has the size of its type;
//   - every buffer is inside the arena, at a multiple of kAlignment plus its offset inside its storage;
//   - a step writes exactly its output (and scratches its workspace); it may write in place of an input only when
//     both name the same storage, and only where its op allows that;
//   - a step has the operands, parameters, dtypes and shapes of its op (src/types/op_rules.h);
//   - rows of a row-valued buffer beyond the phase's row count are zero; a step that writes the buffer ensures this.
// Not here: compilation (src/compiler), execution (executor.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "graphrun/math_mode.h"
#include "graphrun/params.h"
#include "graphrun/types.h"
#include "graphrun/view.h"

namespace graphrun {

using BufferId = std::uint32_t;
using PhaseId = std::uint32_t;
inline constexpr BufferId kNoBuffer = ~BufferId{0};
inline constexpr std::uint64_t kAlignment = 256;  // bytes; same as cudaMalloc, enough for any vector unit

// State (everything before `activation`) keeps its value between steps and phases; other buffers last for one step. A
// `tile` exists within a region, in a tile or in registers, and has no bytes in the arena.
enum class BufferKind : std::uint8_t { data, constant, parameter, slot, counter, metric, activation, workspace, tile };

GRAPHRUN_API std::string_view name_of(BufferKind kind);
inline bool is_state(BufferKind kind) {
  return kind < BufferKind::activation;
}

// Order of a value's elements in the arena.
// `rows`: row-major.
// `vectors`: for data sets that only regions read. Groups of kTileLanes rows are feature-major, and each block of
// `block` rows (a batch) starts a new vector. Element (row r, feature f) of a block has index (r / 16 * features + f) *
// 16 + r % 16. Rows that fill up the last vector of a block are zero. The host still writes and reads type.bytes()
// bytes in row-major order. A buffer of kind `tile` in vectors has no bytes: steps read its rows in place, in the data
// set that is loaded or selected into it. `registers`: for tile values between fused steps (FusedSteps) and within a
// chain (ElementChain). They have no bytes. `strided`: for a view of another value, such as a slice, a transpose or a
// broadcast. Element (i, j, …) is at i * strides[0] + j * strides[1] + … elements after the offset. A strided buffer
// has no bytes of its own. It is read-only, and only steps whose executor supports it read it. If it is a reshape of
// such a view, the strides are those of the axes before the reshape. `codes`: for f32 data sets of 8-bit images, a byte
// per element, row-major; decoded() gives its value. Only minibatch steps read it, and none in a StepTiling. The host
// still writes and reads type.bytes() bytes; a write throws Error if a value has no code.
enum class Layout : std::uint8_t { rows, vectors, registers, strided, codes };

struct Buffer {
  std::string name;
  TensorType type;
  BufferKind kind = BufferKind::activation;
  BufferId storage = kNoBuffer;  // owner of the bytes: its own id, or that of the viewed or reused buffer
  std::uint64_t offset = 0;      // bytes from the start of the arena; kind tile: in the region's tile scratch
  std::uint64_t bytes = 0;
  bool poll = false;  // the host reads it after every run(): executors with a device mirror it in host memory
  Layout layout = Layout::rows;
  std::int64_t block = 0;                  // vectors, of a data set: rows after which a new vector begins
  std::vector<std::int64_t> strides = {};  // strided: one per axis, in elements
  double divisor = 0;                      // codes: that of decoded(); otherwise 0
  Shape extents = {};                      // strided: of the strides' axes, if not those of the type; else rank 0
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// Whether the buffers, both of the arena or both of a tile, share bytes.
inline bool overlap(const Buffer& a, const Buffer& b) {
  return a.bytes > 0 && b.bytes > 0 && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

struct Step {
  Op op = {};        // enumerators in op.h; 0 is invalid
  std::string name;  // name of the graph node, for messages
  std::vector<BufferId> inputs;
  BufferId output = kNoBuffer;
  BufferId workspace = kNoBuffer;
  BufferId row_count = kNoBuffer;  // i32 scalar: samples in this batch; kNoBuffer: always the capacity
  Params params;
  friend bool operator==(const Step&, const Step&) = default;
};

// ---- regions: fused steps (regions.md), which run tile by tile over rows, or over elements

// Operation that merges partial results over rows.
enum class CombineOp : std::uint8_t { sum, product, max, min };
GRAPHRUN_API std::string_view name_of(CombineOp op);

// A value that row steps reduce over rows. Each partition has a partial result at byte `offset` of its accumulators.
// The results of partitions at distance 1, then 2, 4, ... are combined, and the final one is written to `value`.
struct Combine {
  BufferId value = kNoBuffer;
  CombineOp op = CombineOp::sum;
  std::uint64_t offset = 0;
  friend bool operator==(const Combine&, const Combine&) = default;
};

// The same value in the arena (row-major) and in a tile (feature-major).
struct TileMove {
  BufferId arena = kNoBuffer;
  BufferId tile = kNoBuffer;
  friend bool operator==(const TileMove&, const TileMove&) = default;
};

// Row steps that run as one, at the position of the last of them. A matmul of rows applies `bias` (adds one number per
// feature) and then `epilogue` (another step on the result) before it stores anything; values in between are in
// Layout::registers. A matmul that sums over rows also computes `sum`, the sum over rows of its second operand.
inline constexpr std::uint32_t kNoStep = ~std::uint32_t{0};
struct FusedSteps {
  std::uint32_t product = kNoStep, bias = kNoStep, epilogue = kNoStep, sum = kNoStep;  // steps of the phase
  // Step whose position and output the fused steps have.
  std::uint32_t last() const { return epilogue != kNoStep ? epilogue : bias != kNoStep ? bias : product; }
  friend bool operator==(const FusedSteps&, const FusedSteps&) = default;
};

// Steps [first, rows) of the phase run once. Steps [rows, last) run on every tile: they read row values from the tile
// and shared values from the arena, and write a tile buffer or the accumulators of a combined value. A load runs before
// the first row step that reads the tile buffer, and a store after the one that writes it.
struct Stage {
  std::uint32_t first = 0, rows = 0, last = 0;
  std::vector<TileMove> loads, stores;
  std::vector<Combine> combines;
  std::vector<FusedSteps> fused = {};  // row steps; no step occurs twice
  friend bool operator==(const Stage&, const Stage&) = default;
};

// How a region runs: exactly the parameters that affect its results or its memory use, from Executor::region_choices().
// The type of the tiling identifies the kind of machine.
struct HostTiling {
  std::int64_t tile_rows = 0;           // samples of a full tile; tile t starts at sample t * tile_rows
  std::int32_t partitions = 1;          // partition s has tiles [s * tiles / partitions, (s + 1) * tiles / partitions)
  std::uint64_t tile_bytes = 0;         // scratch of one tile, one per worker
  std::uint64_t accumulator_bytes = 0;  // per partition
  // A partition keeps kTileLanes partial sums (of f64, half as many) for each accumulator, and adds them when it ends.
  bool lanes = false;
  friend bool operator==(const HostTiling&, const HostTiling&) = default;
};

// Tiling of an element region: one launch, with its chains next to each other in the grid.
struct GpuTiling {
  std::uint32_t threads = 0;  // per block
  std::uint32_t blocks = 0;
  friend bool operator==(const GpuTiling&, const GpuTiling&) = default;
};

// Storage of a sample's values: registers of a thread; of a warp (16 samples); memory; registers of two neighbouring
// threads; or shared memory of the blocks of a cluster.
enum class RowTile : std::uint8_t { thread, warp, block, pair, split };

// Tiling of a region over rows: one launch of clusters that run at the same time and repeat the region's steps.
// Thread tiles: with T threads per group, thread t of block b processes sample b * T + t, and then every
// (T * blocks)th sample. Pair tiles: the same for pair t of T / 2 pairs.
// Warp tiles: with W warps in each of B blocks, warp w of block b processes samples 16 t to 16 t + 15 for t = w * B +
// b, and then for every (W * B)th t. In all three, partial results are combined by lane, then by warp, and so on in a
// fixed tree. Every block then has the reduced values, and each block runs the steps that run once. Block tiles: blocks
// wait for each other between phases and share the work of each phase in units: parts of products, groups of kBlockRows
// samples, and parts of reduced values. The block that reduces a part also runs the part's steps that run once. Split
// tiles: each cluster has every (clusters)th part of the batch. Each of its blocks has some of the features of wide
// data, with the weights that multiply these features and the states updated with those weights. It also has all other
// values of some of the samples.
inline constexpr std::int64_t kBlockRows = 8;
struct StepTiling {
  std::uint32_t threads = 0;        // per block
  std::uint32_t cluster = 1;        // blocks that reach each other's shared memory
  std::uint32_t clusters = 1;       // if more than one, they communicate through the arena
  std::uint64_t scratch_bytes = 0;  // scratch in the arena
  std::uint32_t groups = 1;  // groups of warps per block; each has all rows of the block and its own reduced values
  RowTile tile = RowTile::thread;  // tiles other than `thread` have one group
  std::uint32_t blocks() const { return cluster * clusters; }
  // For threads or pairs: samples that a block processes at a time.
  std::uint32_t block_rows() const { return threads / groups / (tile == RowTile::pair ? 2 : 1); }
  friend bool operator==(const StepTiling&, const StepTiling&) = default;
};
using Tiling = std::variant<HostTiling, GpuTiling, StepTiling>;
GRAPHRUN_API std::string to_string(const Tiling& tiling);

// Rows per vector. A region runs its stages in order and combines each before the next one begins; then it runs steps
// [stages.back().last, last) once. The steps compute the same values if they run one by one over whole batches.
// In a tile, element (row r, feature f) of a buffer is at byte offset + (f * stride + r) * (size of an element).
// `stride` is the tile's number of rows, rounded up to kTileLanes. A value with k rows per sample has k times as many
// features.
inline constexpr std::int64_t kTileLanes = 16;
constexpr std::int64_t whole_lanes(std::int64_t rows) {  // number of rows, rounded up to whole vectors
  return (rows + kTileLanes - 1) / kTileLanes * kTileLanes;
}

// Elementwise steps [first, last) of the phase over one index space, that of the last step's output (a record has one
// element). Either all steps have rows or none has.
// Numbers: in a chain of several elements, or of one row, a step with one element and no rows computes a number from
// numbers only. An executor may recompute it for each element.
// Reads: a step reads the result of an earlier step of the chain, or a view of it, as that value. Values that only the
// chain reads are in Layout::registers; numbers always are. All other operands are read from memory. If an operand's
// memory overlaps a write of the chain, it is read at the element that is written.
// Products: the first step of a region's only chain may be a matmul. Only the chain reads its result.
struct ElementChain {
  std::uint32_t first = 0, last = 0;
  friend bool operator==(const ElementChain&, const ElementChain&) = default;
};

// A region over rows has stages. A region over elements has only chains. Chains are adjacent steps of the phase, may
// run in any order, and never access memory that another chain writes.
struct Region {
  std::vector<Stage> stages;
  std::uint32_t last = 0;
  BufferId accumulators =
      kNoBuffer;  // workspace: partial results (partial_results.h) or scratch; none if nothing is combined
  Tiling tiling;
  std::vector<ElementChain> chains = {};
  std::uint32_t first() const { return chains.empty() ? stages.front().first : chains.front().first; }
  friend bool operator==(const Region&, const Region&) = default;
};

struct Phase {
  std::string name;                  // "train", "evaluate.test", "predict"
  std::int64_t capacity = 0;         // samples of a full batch
  std::vector<Step> steps;           // in execution order
  std::vector<Region> regions = {};  // in step order; they share no steps
  friend bool operator==(const Phase&, const Phase&) = default;
};

// Written once by load(): constants, and the zeros or ones of initial states.
struct InitialValue {
  BufferId buffer = kNoBuffer;
  std::vector<std::byte> bytes;
  friend bool operator==(const InitialValue&, const InitialValue&) = default;
};

struct Program {
  std::string name;
  std::string target;  // name of the Target used for planning
  std::uint64_t arena_bytes = 0;
  // Peak of the padded live bytes, including what Target::apart keeps separate: no plan can be smaller.
  std::uint64_t lower_bound = 0;
  std::vector<Buffer> buffers;
  std::vector<Phase> phases;
  std::vector<InitialValue> initial;
  MathMode math = MathMode::exact;  // for scalar functions in row regions; hosts only have exact
  friend bool operator==(const Program&, const Program&) = default;
};

GRAPHRUN_API std::string to_string(const Program& program);  // stable golden text, one line per buffer and step
GRAPHRUN_API void check(const Program& program);
// For executors: throws std::logic_error if a buffer with Layout::rows does not contain this byte range.
GRAPHRUN_API void check_range(const Buffer& buffer, std::uint64_t first, std::uint64_t bytes);
// The same for whole rows of dimension 0 from row `first` on. Returns the bytes per row.
GRAPHRUN_API std::uint64_t check_rows(const Buffer& buffer, std::int64_t first, std::uint64_t bytes);
// Strides of a buffer's elements, from its offset on. Not for Layout::vectors.
GRAPHRUN_API View view_of(const Buffer& buffer);
// Copy a strided buffer, whose first element is at `data`, to and from row-major order.
GRAPHRUN_API void gather(const Buffer& buffer, const std::byte* data, std::span<std::byte> to);
GRAPHRUN_API void scatter(const Buffer& buffer, std::span<const std::byte> from, std::byte* data);
// Copy rows of a buffer in Layout::codes from and to f32. encode() throws Error (kind input, code "state.code") if a
// value has no code; the codes before it are then written.
GRAPHRUN_API void encode(const Buffer& buffer, std::span<const std::byte> values, std::byte* codes);
GRAPHRUN_API void decode(const Buffer& buffer, const std::byte* codes, std::span<std::byte> values);
GRAPHRUN_API std::string stored_type(const Buffer& buffer);  // "f32(100, 28)"; "u8(100, 28)" in Layout::codes
GRAPHRUN_API std::int64_t elements_of(const Program& program, const Step& step);  // elements computed; a record has one
GRAPHRUN_API BufferId find_buffer(const Program& program, std::string_view name);  // kNoBuffer if not found
GRAPHRUN_API BufferId storage_root(const Program& program, BufferId id);           // end of its chain of storages
GRAPHRUN_API PhaseId find_phase(const Program& program, std::string_view name);    // throws Error that lists the phases
// Arena range that the host mirrors: from the first to the last byte of polled buffers, so that one copy is enough. The
// planner places polled states next to each other.
struct PollBlock {
  std::uint64_t offset = 0, bytes = 0;
};
GRAPHRUN_API PollBlock poll_block(const Program& program);  // empty if nothing is polled

}  // namespace graphrun
