// scatter.cu: scatter_add: stable sort of updates by destination row; sums of tiles of sorted updates; sums of rows
// that span several tiles, tile by tile. No float atomics: the plan fixes the order of terms.
#include "graphrun/op.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/scatter_plan.h"

namespace graphrun::cuda {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kThreads = 256;
constexpr u32 kDigits = 1u << ScatterPlan::kDigit;
static_assert(kDigits == kThreads, "a thread for each digit");

// Sort keys: the row of each update; `rows`, which sorts last, if the index is not a row or the update is past the
// batch.
struct Places {
  const std::int32_t* indices = nullptr;
  Extent extent;
  u32 rows = 0;

  __device__ u32 key(u64 place, u64 valid) const {
    const std::int32_t index = place < valid ? indices[place] : -1;
    return index >= 0 && static_cast<u32>(index) < rows ? static_cast<u32>(index) : rows;
  }
};

__global__ void clear_kernel(float* out, u64 count) {
  for (u64 i = thread_index(); i < count; i += thread_count()) out[i] = 0.0f;
}

// Each thread counts the updates that precede its own.
__global__ void rank_kernel(Places places, u32* keys, u32* order) {
  __shared__ u32 tile[kThreads];
  const u32 count = static_cast<u32>(places.extent.all);
  const u64 valid = places.extent.valid();
  const u32 mine = blockIdx.x * kThreads + threadIdx.x;
  const u32 key = mine < count ? places.key(mine, valid) : 0;
  u32 rank = 0;
  for (u32 begin = 0; begin < count; begin += kThreads) {
    const u32 other = begin + threadIdx.x;
    __syncthreads();
    if (other < count) tile[threadIdx.x] = places.key(other, valid);
    __syncthreads();
    const u32 here = count - begin < kThreads ? count - begin : kThreads;
    for (u32 i = 0; i < here; ++i) rank += tile[i] < key || (tile[i] == key && begin + i < mine) ? 1 : 0;
  }
  if (mine >= count) return;
  keys[rank] = key;
  order[rank] = mine;
}

__global__ void key_kernel(Places places, u32* keys, u32* order) {
  const u64 valid = places.extent.valid();
  for (u64 i = thread_index(); i < places.extent.all; i += thread_count()) {
    keys[i] = places.key(i, valid);
    order[i] = static_cast<u32>(i);
  }
}

// ---- radix sort by one digit: counts per block and digit, their prefix sums, then a stable scatter ---------------

__device__ u32 digit_of(u32 key, int shift) {
  return key >> shift & (kDigits - 1);
}

__global__ void count_kernel(const u32* keys, u64 count, int shift, u32* counts) {
  __shared__ u32 mine[kDigits];
  mine[threadIdx.x] = 0;
  __syncthreads();
  const u64 begin = blockIdx.x * ScatterPlan::kBlock;
  const u64 end = begin + ScatterPlan::kBlock < count ? begin + ScatterPlan::kBlock : count;
  for (u64 i = begin + threadIdx.x; i < end; i += kThreads) atomicAdd(&mine[digit_of(keys[i], shift)], 1u);
  __syncthreads();
  counts[static_cast<u64>(threadIdx.x) * gridDim.x + blockIdx.x] = mine[threadIdx.x];
}

// Exclusive prefix sum, by one block.
__global__ void begin_kernel(u32* counts, u64 count) {
  __shared__ u32 sums[kThreads];
  const u64 share = (count + kThreads - 1) / kThreads;
  const u64 begin = threadIdx.x * share < count ? threadIdx.x * share : count;
  const u64 end = begin + share < count ? begin + share : count;
  u32 sum = 0;
  for (u64 i = begin; i < end; ++i) sum += counts[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  u32 before = 0;
  for (u32 t = 0; t < threadIdx.x; ++t) before += sums[t];
  for (u64 i = begin; i < end; ++i) {
    const u32 here = counts[i];
    counts[i] = before;
    before += here;
  }
}

__global__ void place_kernel(const u32* keys, const u32* order, u64 count, int shift, const u32* begins, u32* keys_to,
                             u32* order_to) {
  constexpr u32 kWarps = kThreads / 32;
  __shared__ u32 next[kDigits];
  __shared__ u32 of_warp[kWarps][kDigits];
  next[threadIdx.x] = begins[static_cast<u64>(threadIdx.x) * gridDim.x + blockIdx.x];
  const u32 warp = threadIdx.x / 32;
  const u32 lane = threadIdx.x % 32;
  const u64 begin = blockIdx.x * ScatterPlan::kBlock;
  const u64 end = begin + ScatterPlan::kBlock < count ? begin + ScatterPlan::kBlock : count;
  for (u64 at = begin; at < end; at += kThreads) {
    for (u32 w = 0; w < kWarps; ++w) of_warp[w][threadIdx.x] = 0;
    __syncthreads();
    const u64 i = at + threadIdx.x;
    const bool live = i < end;
    const u32 key = live ? keys[i] : 0;
    const u32 digit = live ? digit_of(key, shift) : kDigits;
    const u32 alike = __match_any_sync(~0u, digit);
    const u32 before = static_cast<u32>(__popc(alike & ((1u << lane) - 1)));
    if (live && before == 0) of_warp[warp][digit] = static_cast<u32>(__popc(alike));
    __syncthreads();
    if (live) {
      u32 to = next[digit] + before;
      for (u32 w = 0; w < warp; ++w) to += of_warp[w][digit];
      keys_to[to] = key;
      order_to[to] = order[i];
    }
    __syncthreads();
    for (u32 w = 0; w < kWarps; ++w) next[threadIdx.x] += of_warp[w][threadIdx.x];
  }
}

// ---- sums

struct Sorted {
  const u32* keys = nullptr;
  const u32* order = nullptr;
  u64 places = 0, width = 0, tiles = 0;
  u32 rows = 0;
  float* first = nullptr;  // (tiles, width)
  float* last = nullptr;   // (tiles, width)

  __device__ u32 key(u64 at) const { return at < places ? keys[at] : rows; }
};

// One thread per tile and column.
__global__ void tile_kernel(Sorted sorted, const float* updates, float* out) {
  constexpr int kAhead = 8;  // loads in flight before the first is needed
  static_assert(ScatterPlan::kTile % kAhead == 0);
  for (u64 item = thread_index(); item < sorted.tiles * sorted.width; item += thread_count()) {
    const u64 tile = divide(item, sorted.width);
    const u64 column = item - tile * sorted.width;
    const u64 begin = tile * ScatterPlan::kTile;
    const u64 end = begin + ScatterPlan::kTile;
    u32 row = sorted.key(begin);
    bool began_before = begin > 0 && sorted.keys[begin - 1] == row;
    float sum = 0.0f;
    for (u64 at = begin; at < end && row < sorted.rows; at += kAhead) {
      u32 key[kAhead];
      float x[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        key[i] = sorted.key(at + i);
        x[i] = key[i] < sorted.rows ? updates[sorted.order[at + i] * sorted.width + column] : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (key[i] != row) {
          if (row < sorted.rows) {
            if (began_before) {
              sorted.first[item] = sum;
            } else {
              out[row * sorted.width + column] = sum;
            }
          }
          began_before = false;
          row = key[i];
          sum = 0.0f;
        }
        sum += x[i];
      }
    }
    if (row >= sorted.rows) continue;
    if (began_before) {
      sorted.first[item] = sum;
    } else if (sorted.key(end) == row) {
      sorted.last[item] = sum;
    } else {
      out[row * sorted.width + column] = sum;
    }
  }
}

// A row that continues past a tile is completed by the thread of the tile in which it begins.
__global__ void join_kernel(Sorted sorted, float* out) {
  for (u64 item = thread_index(); item < sorted.tiles * sorted.width; item += thread_count()) {
    u64 tile = divide(item, sorted.width);
    const u64 column = item - tile * sorted.width;
    const u64 begin = tile * ScatterPlan::kTile;
    const auto goes_on = [&](u64 from) { return sorted.key((from + 1) * ScatterPlan::kTile); };
    const u32 row = goes_on(tile);
    if (row >= sorted.rows || sorted.keys[begin + ScatterPlan::kTile - 1] != row) continue;
    if (begin > 0 && sorted.keys[begin - 1] == row) continue;
    float sum = sorted.last[item];
    do {
      ++tile;
      sum += sorted.first[tile * sorted.width + column];
    } while (goes_on(tile) == row);
    out[row * sorted.width + column] = sum;
  }
}

void launch_scatter_add(const KernelArgs& args, Launcher& launcher) {
  const ScatterPlan plan = plan_scatter(args.in_type[0], args.out_type);
  const Machine& machine = launcher.machine();
  float* const out = args.output<float>();
  const u64 results = plan.rows * plan.width;
  if (results == 0) return;
  launch(launcher, clear_kernel, "scatter_clear", linear_grid(machine, results, kThreads), kThreads, out, results);
  if (plan.places == 0) return;

  const Places places{args.input<std::int32_t>(0), extent_of(args, args.in_type[0], plan.places),
                      static_cast<u32>(plan.rows)};
  const auto words = [&](u64 offset) {
    return reinterpret_cast<u32*>(static_cast<std::byte*>(args.workspace) + offset);
  };
  int from = 0;
  if (plan.passes == 0) {
    const Grid grid{static_cast<u32>((plan.places + kThreads - 1) / kThreads), 1, 1};
    launch(launcher, rank_kernel, "scatter_rank", grid, kThreads, places, words(plan.keys[0]), words(plan.order[0]));
  } else {
    launch(launcher, key_kernel, "scatter_keys", linear_grid(machine, plan.places, kThreads), kThreads, places,
           words(plan.keys[0]), words(plan.order[0]));
    const Grid grid{static_cast<u32>(plan.blocks), 1, 1};
    for (int pass = 0; pass < plan.passes; ++pass, from = 1 - from) {
      const int shift = pass * ScatterPlan::kDigit;
      u32* const counts = words(plan.counts);
      launch(launcher, count_kernel, "scatter_count", grid, kThreads, words(plan.keys[from]), plan.places, shift,
             counts);
      launch(launcher, begin_kernel, "scatter_begin", Grid{}, kThreads, counts, plan.blocks << ScatterPlan::kDigit);
      launch(launcher, place_kernel, "scatter_place", grid, kThreads, words(plan.keys[from]), words(plan.order[from]),
             plan.places, shift, counts, words(plan.keys[1 - from]), words(plan.order[1 - from]));
    }
  }
  const Sorted sorted{words(plan.keys[from]),
                      words(plan.order[from]),
                      plan.places,
                      plan.width,
                      plan.tiles,
                      static_cast<u32>(plan.rows),
                      reinterpret_cast<float*>(words(plan.first)),
                      reinterpret_cast<float*>(words(plan.last))};
  const Grid grid = linear_grid(machine, plan.tiles * plan.width, kThreads);
  launch(launcher, tile_kernel, "scatter_sum", grid, kThreads, sorted, args.input<float>(1), out);
  if (plan.tiles > 1) launch(launcher, join_kernel, "scatter_join", grid, kThreads, sorted, out);
}

}  // namespace

LaunchFn find_scatter(Op op) {
  return op == Op::scatter_add ? launch_scatter_add : nullptr;
}

}  // namespace graphrun::cuda
