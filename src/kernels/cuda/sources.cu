// sources.cu: input rows and records of a step: minibatch, row_count, shard_step, divide_step, increment, record. The
// counter is read on the device, so a captured step selects different rows on each run.
#include <algorithm>

#include "base/random_bits.h"
#include "graphrun/family_op.h"
#include "graphrun/params.h"
#include "kernels/cuda/launch.cuh"

namespace graphrun::cuda {
namespace {

struct Batches {
  std::uint64_t total = 0, capacity = 0, batches = 1;
  bool shuffle = false;
  std::uint64_t key = 0;

  bool drop_last = false;
  const std::uint64_t* rows = nullptr;  // device address of the number of rows in use, at most `total`; null: all
  std::uint64_t shards = 1, share = 0;  // share: rows of a shard; without shards, of the batch

  // Batches of the rows in use (MinibatchParams::of_rows).
  __device__ Batches now() const {
    Batches some = *this;
    if (rows == nullptr || *rows >= total) return some;
    const std::uint64_t least = !drop_last ? 1 : capacity < total ? capacity : total;
    some.total = *rows < least ? least : *rows;
    some.batches = some.total / capacity + (!drop_last && some.total % capacity != 0 ? 1 : 0);
    if (some.batches == 0) some.batches = 1;
    return some;
  }
  // MinibatchParams::at()
  __device__ std::uint64_t batch(std::uint64_t step) const { return shards == 1 ? step : step / shards; }
  __device__ std::uint64_t end(std::uint64_t step) const {
    const std::uint64_t full = (batch(step) % batches + 1) * capacity;
    return full < total ? full : total;
  }
  __device__ std::uint64_t first(std::uint64_t step) const {
    const std::uint64_t begin = batch(step) % batches * capacity;
    if (shards == 1) return begin;
    const std::uint64_t own = begin + step % shards * share, last = end(step);
    return own < last ? own : last;
  }
  __device__ int count(std::uint64_t step) const {
    if (shards == 1) return batch_rows(step, total, capacity, batches);
    const std::uint64_t left = end(step) - first(step);
    return static_cast<int>(left < share ? left : share);
  }
  // Data set row of row r of the step's batch or shard.
  __device__ std::uint64_t row(std::uint64_t step, std::uint64_t r) const {
    const std::uint64_t at = first(step) + r;
    return shuffle ? bits::permuted(at, total, key, batch(step) / batches) : at;
  }
};

// `rows`: index of the operand that holds the number of rows in use; -1: all.
Batches batches_of(const KernelArgs& args, int rows) {
  const auto& params = args.params.as<MinibatchParams>();
  return {static_cast<std::uint64_t>(params.total),
          static_cast<std::uint64_t>(params.capacity),
          static_cast<std::uint64_t>(params.batches() > 0 ? params.batches() : 1),
          params.shuffle,
          params.key,
          params.drop_last,
          rows < 0 ? nullptr : args.input<std::uint64_t>(rows),
          static_cast<std::uint64_t>(params.shards),
          static_cast<std::uint64_t>(params.rows())};
}

// `lanes` adjacent threads copy a row of `row` units, or one part of it if the grid's y has several. Each thread
// computes the row's address itself.
template <class From, class Unit, class Convert>
__device__ void copy_rows(const From* data, const std::uint64_t* step, const Batches& room, std::uint64_t row,
                          std::uint32_t lanes, Unit* out, Convert convert) {
  const Batches batches = room.now();
  const std::uint64_t now = *step;
  const auto count = static_cast<std::uint64_t>(batches.count(now));
  const std::uint64_t rows_at_once = thread_count() / lanes;
  const std::uint64_t begin = static_cast<std::uint64_t>(blockIdx.y) * lanes + threadIdx.x % lanes;
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.y) * lanes;
  for (std::uint64_t r = thread_index() / lanes; r < batches.share; r += rows_at_once) {
    const bool live = r < count;
    const From* from = data + (live ? batches.row(now, r) * row : 0);
    for (std::uint64_t i = begin; i < row; i += stride) out[r * row + i] = live ? convert(from[i]) : Unit{};
  }
}

template <class Unit>
__global__ void minibatch_kernel(const Unit* data, const std::uint64_t* step, Batches room, std::uint64_t row,
                                 std::uint32_t lanes, Unit* out) {
  copy_rows(data, step, room, row, lanes, out, [](const Unit& unit) { return unit; });
}

// Fills the table of a block: the value of each code, decoded() of params.h.
__device__ void fill_values(float* values, double divisor) {
  for (unsigned code = threadIdx.x; code < 256; code += blockDim.x) values[code] = static_cast<float>(code / divisor);
  __syncthreads();
}

// Rows of a data set in Layout::codes: a float for each code.
__global__ void decode_kernel(const std::uint8_t* data, const std::uint64_t* step, Batches room, std::uint64_t row,
                              std::uint32_t lanes, float* out, double divisor) {
  __shared__ float values[256];
  fill_values(values, divisor);
  copy_rows(data, step, room, row, lanes, out, [&](std::uint8_t code) { return values[code]; });
}
// The same for rows of a multiple of four codes.
__global__ void decode_fours_kernel(const uchar4* data, const std::uint64_t* step, Batches room, std::uint64_t row,
                                    std::uint32_t lanes, float4* out, double divisor) {
  __shared__ float values[256];
  fill_values(values, divisor);
  copy_rows(data, step, room, row, lanes, out, [&](const uchar4& codes) {
    return make_float4(values[codes.x], values[codes.y], values[codes.z], values[codes.w]);
  });
}

// `units`: units per row.
template <class From, class Unit, class Kernel, class... More>
void launch_rows(const KernelArgs& args, Launcher& launcher, Kernel* kernel, std::uint64_t units, More... more) {
  constexpr std::uint32_t kThreads = 256;
  const Batches batches = batches_of(args, args.inputs == 3 ? 2 : -1);
  std::uint32_t lanes = 1;
  while (lanes < kThreads && lanes < units) lanes *= 2;
  Grid grid = linear_grid(launcher.machine(), batches.share * lanes, kThreads);
  const std::uint64_t room = static_cast<std::uint64_t>(launcher.machine().multiprocessors) * 4 / grid.x;
  grid.y = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(units / (lanes * 4), 1, room > 1 ? room : 1));
  launch(launcher, kernel, "minibatch", grid, kThreads, args.input<From>(0), args.input<std::uint64_t>(1), batches,
         units, lanes, args.output<Unit>(), more...);
}

void launch_minibatch(const KernelArgs& args, Launcher& launcher) {
  const auto& params = args.params.as<MinibatchParams>();
  const std::uint64_t bytes = args.out_type.bytes();
  if (bytes == 0) return;
  const std::uint64_t row = bytes / static_cast<std::uint64_t>(params.rows());
  if (params.divisor > 0) {
    const std::uint64_t width = row / sizeof(float);
    if (width % 4 == 0 && is_aligned(args.in[0], 4) && is_aligned(args.out, 16))
      return launch_rows<uchar4, float4>(args, launcher, decode_fours_kernel, width / 4, params.divisor);
    return launch_rows<std::uint8_t, float>(args, launcher, decode_kernel, width, params.divisor);
  }
  const auto fits = [&](std::uint64_t unit) {
    return row % unit == 0 && is_aligned(args.in[0], unit) && is_aligned(args.out, unit);
  };
  const auto copy = [&]<class Unit>(Unit) {
    launch_rows<Unit, Unit>(args, launcher, minibatch_kernel<Unit>, row / sizeof(Unit));
  };
  if (fits(16)) return copy(uint4{});
  if (fits(4)) return copy(std::uint32_t{});
  copy(std::uint8_t{});
}

__global__ void row_count_kernel(const std::uint64_t* step, Batches batches, std::int32_t* out) {
  *out = batches.now().count(*step);
}
void launch_row_count(const KernelArgs& args, Launcher& launcher) {
  const Batches batches = batches_of(args, args.inputs == 2 ? 1 : -1);
  launch(launcher, row_count_kernel, "row_count", Grid{}, 1, args.input<std::uint64_t>(0), batches,
         args.output<std::int32_t>());
}

__global__ void shard_step_kernel(const std::uint64_t* step, const std::uint64_t* shard, std::uint64_t shards,
                                  std::uint64_t* out) {
  *out = *step * shards + *shard;
}
void launch_shard_step(const KernelArgs& args, Launcher& launcher) {
  launch(launcher, shard_step_kernel, "shard_step", Grid{}, 1, args.input<std::uint64_t>(0),
         args.input<std::uint64_t>(1), args.params.as<ShardParams>().shards, args.output<std::uint64_t>());
}

__global__ void increment_kernel(const std::uint64_t* in, std::uint64_t* out) {
  *out = *in + 1;
}
void launch_increment(const KernelArgs& args, Launcher& launcher) {
  launch(launcher, increment_kernel, "increment", Grid{}, 1, args.input<std::uint64_t>(0),
         args.output<std::uint64_t>());
}

__global__ void divide_step_kernel(const std::uint64_t* in, std::uint64_t every, std::uint64_t* out) {
  *out = *in / every;
}
void launch_divide_step(const KernelArgs& args, Launcher& launcher) {
  launch(launcher, divide_step_kernel, "divide_step", Grid{}, 1, args.input<std::uint64_t>(0),
         static_cast<std::uint64_t>(args.params.as<ScalarParams>().a), args.output<std::uint64_t>());
}

__global__ void record_kernel(const float* value, const std::uint64_t* step, std::uint64_t size, float* ring) {
  ring[*step % size] = *value;
}
void launch_record(const KernelArgs& args, Launcher& launcher) {
  launch(launcher, record_kernel, "record", Grid{}, 1, args.input<float>(1), args.input<std::uint64_t>(2),
         static_cast<std::uint64_t>(args.out_type.shape[0]), args.output<float>());
}

}  // namespace

LaunchFn find_sources(Op op) {
  if (op == Op::minibatch || op == family_op::varying_minibatch) return launch_minibatch;
  if (op == Op::row_count || op == family_op::varying_row_count) return launch_row_count;
  if (op == Op::shard_step) return launch_shard_step;
  if (op == Op::increment) return launch_increment;
  if (op == family_op::divide_step) return launch_divide_step;
  if (op == Op::record) return launch_record;
  return nullptr;
}

}  // namespace graphrun::cuda
