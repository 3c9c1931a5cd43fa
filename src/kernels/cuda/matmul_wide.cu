// matmul_wide.cu: products without a small extent, on the tensor cores of compute capability 9.0, as accurate as f32.
// Each factor is the sum of two that tensor cores take exactly: rounded to their 10 fraction bits, and the remainder.
// Three of the four products of the parts are added; the fourth is below the precision of f32. Tensor cores truncate
// their sums, so a sum of 32 terms goes from them to an f32 accumulator, which rounds. The order of all sums follows
// from the plan.
// A block has a tile of 64 rows per warpgroup. Rows go from memory to registers, columns through registers to shared
// memory in two parts, both a step of 32 terms ahead of the products. In shared memory, terms r, r + 4, r + 8, r + 12
// of 16 are adjacent: a lane of the left factor then reads four terms that are adjacent in memory.
// Elementwise steps that follow (ProductEpilogue) have the functions of single steps. Their tile goes through shared
// memory, so that a lane has four adjacent columns, and a loop over rows is short code.
#include "graphrun/params.h"
#include "kernels/cuda/factor_view.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul_plan.h"
#include "kernels/cuda/product_epilogue.cuh"
#include "kernels/cuda/wgmma.cuh"

namespace graphrun::cuda {
namespace {

constexpr int kTerms = MatmulPlan::kWideTerms;

struct WideProduct {
  const float* a = nullptr;
  const float* b = nullptr;
  int m = 0, n = 0, k = 0;
  int split = 0;                          // terms of a block
  Extent rows, terms;                     // limits of m and k
  bool packs_a = false, packs_b = false;  // four adjacent terms are aligned
  bool packs_out = false;                 // so are four adjacent results and the operands of the epilogue
  ProductEpilogue epilogue;
  FactorView view = {};  // shows a, in kernels for views
};

// Distance of rows of a tile in shared memory: lanes that store a result each use all banks.
template <int N>
constexpr int kRowDistance = N + 8;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ __forceinline__ void split(float x, float& high, float& low) {
  high = __uint_as_float((__float_as_uint(x) + 0x1000u) & ~0x1fffu);
  low = x - high;
}

// Loads 4 N terms of a row of (rows, k), from term `first` on: zeros from term `end` on. kWhole: all are before `end`.
template <bool kWhole, int N>
__device__ __forceinline__ void load_terms(const float* row, int first, int end, bool packs, float* to) {
  if (kWhole && packs) {
#pragma unroll
    for (int i = 0; i < 4 * N; i += 4) {
      const float4 x = *reinterpret_cast<const float4*>(row + first + i);
      to[i] = x.x, to[i + 1] = x.y, to[i + 2] = x.z, to[i + 3] = x.w;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 4 * N; ++i) to[i] = kWhole || first + i < end ? row[first + i] : 0.0f;
}
// The same of column `column` of (k, columns).
template <bool kWhole, int N>
__device__ __forceinline__ void load_column(const float* from, int columns, int column, int first, int end, float* to) {
  const float* const at = from + static_cast<std::int64_t>(first) * columns + column;
#pragma unroll
  for (int i = 0; i < 4 * N; ++i) {
    to[i] = kWhole || first + i < end ? at[static_cast<std::int64_t>(i) * columns] : 0.0f;
  }
}

// The same of a view: the row begins at `row`, term i is `places[i]` after it.
template <bool kWhole>
__device__ __forceinline__ void load_view(const float* row, const int (&places)[4], int first, int end, bool packs,
                                          float (&to)[4]) {
  if (kWhole && packs) return load4(row + places[0], to);
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] = kWhole || first + i < end ? row[places[i]] : 0.0f;
}

// Finishes and stores the 16 rows of a warp, from (row, column) on, whose sums are in shared memory. A lane has four
// columns. If the last step has another operand, four rows of it are loaded at a time.
template <int N, bool kBinary>
__device__ __forceinline__ void finish(const WideProduct& p, const float* tile, int row, int column, float* out) {
  constexpr int kLanes = N / 4, kRows = 32 / kLanes, kTurns = kBinary ? 4 : 1;
  const ProductEpilogue& e = p.epilogue;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  row += lane / kLanes, column += lane % kLanes * 4;
  if (column >= p.n) return;
  tile += lane / kLanes * kRowDistance<N> + lane % kLanes * 4;
  const auto rows = static_cast<std::int64_t>(p.rows.valid());
  float bias[4] = {}, with[kTurns][4] = {};
  if (e.bias != nullptr) load_columns(e.bias + column, p.n - column, p.packs_out, bias);
#pragma unroll 1
  for (int i = 0; i < 16; i += kTurns * kRows) {
    const auto place = [&](int turn) { return static_cast<std::int64_t>(row + i + turn * kRows) * p.n + column; };
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      if (kBinary && row + i + turn * kRows < p.m)
        load_columns(e.with + place(turn), p.n - column, p.packs_out, with[turn]);
    }
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int r = row + i + turn * kRows;
      if (r >= p.m) return;
      float x[4];
      load4(tile + (i + turn * kRows) * kRowDistance<N>, x);
      finish_columns<kBinary>(e, bias, with[turn], r < rows, x);
      store_columns(x, p.n - column, p.packs_out, out + place(turn));
    }
  }
}

#endif

template <int kWarpgroups, int N, bool kTransposeA, bool kTransposeB, bool kView>
__global__ void __launch_bounds__(128 * kWarpgroups) matmul_wide(WideProduct p, float* out) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  constexpr int kGroup = 8;  // tiles of rows that follow each other: blocks that run together share columns
  constexpr int kThreads = 128 * kWarpgroups, kRows = 64 * kWarpgroups, kPart = N * kTerms;
  static_assert(2 * N == kThreads, "a thread loads 16 terms of a column");
  extern __shared__ __align__(128) float shared[];  // two buffers of two parts: (8, N, 4)
  const int tiles_n = (p.n + N - 1) / N, tiles_m = (p.m + kRows - 1) / kRows, block = static_cast<int>(blockIdx.x);
  const int group = block / (kGroup * tiles_n) * kGroup;
  const int together = tiles_m - group < kGroup ? tiles_m - group : kGroup;
  const int of_group = block % (kGroup * tiles_n);
  const int row0 = (group + of_group % together) * kRows, column0 = of_group / together * N;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, g = lane / 4, t = lane % 4;
  const int row = row0 + thread / 32 * 16 + g;

  const int begin = static_cast<int>(blockIdx.y) * p.split;
  const int terms = static_cast<int>(p.terms.valid());
  const int end = begin + p.split < terms ? begin + p.split : terms;
  const int steps = end > begin ? (end - begin + kTerms - 1) / kTerms : 0;

  // Rows and columns past the end repeat the last one; their results are not stored.
  float left[2][2][4], right[16];
  int places[2];  // beginnings of rows of a view
#pragma unroll
  for (int half = 0; kView && half < 2; ++half)
    places[half] = p.view.rows.offset(row + 8 * half < p.m ? row + 8 * half : p.m - 1);
  const auto load_left = [&](int step) {
    const int first = begin + step * kTerms + 4 * t;
    const auto load = [&](auto whole) {
      if constexpr (kView) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          int terms_at[4];
#pragma unroll
          for (int j = 0; j < 4; ++j) terms_at[j] = p.view.terms.offset(first + 16 * i + j);
#pragma unroll
          for (int half = 0; half < 2; ++half)
            load_view<whole.value>(p.a + places[half], terms_at, first + 16 * i, end, p.packs_a, left[half][i]);
        }
      } else {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int r = row + 8 * half < p.m ? row + 8 * half : p.m - 1;
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            if constexpr (kTransposeA) {
              load_column<whole.value, 1>(p.a, p.m, r, first + 16 * i, end, left[half][i]);
            } else {
              load_terms<whole.value, 1>(p.a + static_cast<std::int64_t>(r) * p.k, first + 16 * i, end, p.packs_a,
                                         left[half][i]);
            }
          }
        }
      }
    };
    begin + (step + 1) * kTerms <= end ? load(std::true_type{}) : load(std::false_type{});
  };
  const int my_column = thread % N, my_half = thread / N;
  const auto load_right = [&](int step) {
    const int first = begin + step * kTerms + 16 * my_half;
    const int column = column0 + my_column < p.n ? column0 + my_column : p.n - 1;
    const auto load = [&](auto whole) {
      if constexpr (kTransposeB) {
        load_terms<whole.value, 4>(p.b + static_cast<std::int64_t>(column) * p.k, first, end, p.packs_b, right);
      } else {
        load_column<whole.value, 4>(p.b, p.n, column, first, end, right);
      }
    };
    begin + (step + 1) * kTerms <= end ? load(std::true_type{}) : load(std::false_type{});
  };
  const auto share_right = [&](float* to) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      float high[4], low[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) split(right[4 * i + r], high[i], low[i]);
      float4* const at = reinterpret_cast<float4*>(to) + (4 * my_half + r) * N + my_column;
      at[0] = make_float4(high[0], high[1], high[2], high[3]);
      at[kPart / 4] = make_float4(low[0], low[1], low[2], low[3]);
    }
    wgmma_publish();
  };

  float sum[N / 2] = {};
  if (steps > 0) {
    load_left(0);
    load_right(0);
    share_right(shared);
    if (steps > 1) load_right(1);
  }
  for (int step = 0; step < steps; ++step) {
    float high[4][4], low[4][4];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
#pragma unroll
      for (int e = 0; e < 4; ++e) split(left[e % 2][q / 2][q % 2 * 2 + e / 2], high[q][e], low[q][e]);
    }
    if (step + 1 < steps) load_left(step + 1);
    __syncthreads();
    const float* const from = shared + step % 2 * 2 * kPart;
    float part[N / 2];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      wgmma_begin();
      const std::uint64_t right_high = wgmma_operand(from + 8 * q * N, N);
      const std::uint64_t right_low = wgmma_operand(from + kPart + 8 * q * N, N);
      Warpgroup<N>::multiply_add(part, low[q], right_high, q > 0);
      Warpgroup<N>::multiply_add(part, high[q], right_low, true);
      Warpgroup<N>::multiply_add(part, high[q], right_high, true);
    }
    wgmma_end();
    if (step + 1 < steps) share_right(shared + (step + 1) % 2 * 2 * kPart);
    if (step + 2 < steps) load_right(step + 2);
    wgmma_wait();
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      asm volatile("" : "+f"(part[i])::"memory");  // not read before the wait
      sum[i] += part[i];
    }
  }

  if constexpr (!kTransposeA) {
    if (p.epilogue.steps) {
      __syncthreads();  // all products have read shared memory
      float* const tile = shared + thread / 32 * 16 * kRowDistance<N>;
#pragma unroll
      for (int i = 0; i < N / 2; i += 2) {
        float* const to = tile + (g + i % 4 / 2 * 8) * kRowDistance<N> + i / 4 * 8 + 2 * t;
        *reinterpret_cast<float2*>(to) = make_float2(sum[i], sum[i + 1]);
      }
      __syncwarp();
      return p.epilogue.with != nullptr ? finish<N, true>(p, tile, row - g, column0, out)
                                        : finish<N, false>(p, tile, row - g, column0, out);
    }
  }
  out += static_cast<std::int64_t>(blockIdx.y) * p.m * p.n;
  const auto rows = static_cast<std::int64_t>(p.rows.valid());
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = row + 8 * half;
    if (r >= p.m) continue;
    const bool live = r < rows;
    float* const to = out + static_cast<std::int64_t>(r) * p.n;
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
      const int column = column0 + 8 * j + 2 * t;
      const float x = live ? sum[4 * j + 2 * half] : 0.0f, y = live ? sum[4 * j + 2 * half + 1] : 0.0f;
      if (p.n % 2 == 0 && column < p.n) {
        *reinterpret_cast<float2*>(to + column) = make_float2(x, y);
      } else {
        if (column < p.n) to[column] = x;
        if (column + 1 < p.n) to[column + 1] = y;
      }
    }
  }
#else
  __trap();  // plans have this kernel only for compute capability 9.0, whose code is sm_90a (cmake/Cuda.cmake)
#endif
}

template <int kWarpgroups, int N>
void launch_tiles(const WideProduct& p, bool shows_a, const MatmulParams& params, const MatmulPlan& plan,
                  Launcher& launcher, float* out) {
  constexpr void (*kKernels[2][2][2])(WideProduct, float*) = {
      {{matmul_wide<kWarpgroups, N, false, false, false>, matmul_wide<kWarpgroups, N, false, true, false>},
       {matmul_wide<kWarpgroups, N, true, false, false>, matmul_wide<kWarpgroups, N, true, true, false>}},
      {{matmul_wide<kWarpgroups, N, false, false, true>, matmul_wide<kWarpgroups, N, false, true, true>},
       {matmul_wide<kWarpgroups, N, true, false, true>, matmul_wide<kWarpgroups, N, true, true, true>}}};
  const Grid grid{
      plan.blocks(launcher.machine()), static_cast<std::uint32_t>(plan.splits), 1,
      static_cast<std::uint32_t>(std::max(4 * N * kTerms, 64 * kWarpgroups * kRowDistance<N>) * sizeof(float))};
  launch(launcher, kKernels[shows_a][params.transpose_a][params.transpose_b], "matmul_wide", grid, plan.threads, p,
         out);
}

}  // namespace

void launch_matmul_wide(const KernelArgs& args, const MatmulPlan& plan, const ProductEpilogue& epilogue,
                        Launcher& launcher, float* out) {
  const auto& params = args.params.as<MatmulParams>();
  WideProduct p;
  p.a = args.input<float>(0), p.b = args.input<float>(1);
  p.m = static_cast<int>(plan.m), p.n = static_cast<int>(plan.n), p.k = static_cast<int>(plan.k);
  p.split = static_cast<int>(plan.split);
  p.rows.all = static_cast<std::uint64_t>(plan.m);
  p.terms.all = static_cast<std::uint64_t>(plan.k);
  (params.transpose_a ? p.terms : p.rows) =
      extent_of(args, args.in_type[0], static_cast<std::uint64_t>(params.transpose_a ? plan.k : plan.m));
  p.packs_a = plan.k % 4 == 0 && is_aligned(p.a, 16);
  p.packs_b = plan.k % 4 == 0 && is_aligned(p.b, 16);
  p.epilogue = epilogue;
  p.packs_out =
      plan.n % 4 == 0 && is_aligned(out, 16) && is_aligned(epilogue.with, 16) && is_aligned(epilogue.bias, 16);
  const bool shows_a = args.in_strides[0] != nullptr;
  if (shows_a) {
    p.view = *factor_view(args.stored_view(0), params.transpose_a ? plan.k : plan.m, params.transpose_a);
    p.packs_a = p.view.terms.packs() && p.view.rows.aligns() && is_aligned(p.a, 16);
  }
  plan.tile_n == 128 ? launch_tiles<2, 128>(p, shows_a, params, plan, launcher, out)
                     : launch_tiles<1, 64>(p, shows_a, params, plan, launcher, out);
}

}  // namespace graphrun::cuda
