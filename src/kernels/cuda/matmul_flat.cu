// matmul_flat.cu: products bound by reading or writing their largest operand.
// - matmul_few_terms: at most 8 terms; the steps after the product run in its kernel (ProductEpilogue).
// - matmul_tall: the left factor is transposed, one factor has at most 8 columns; sums over many rows.
// - matmul_dots: at most 4 columns; eight lanes share a row of the left factor.
// In the first two, a block has a range of rows and a tile of columns. Its threads have four adjacent columns each, so
// that they read or write whole rows; threads past the tile's columns take further rows. Terms are added in order with
// one rounding each, then threads, then blocks.
#include "graphrun/params.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul_plan.h"
#include "kernels/cuda/product_epilogue.cuh"

namespace graphrun::cuda {
namespace {

constexpr int kThreads = 256;

struct FlatProduct {
  const float* a = nullptr;  // left factor; matmul_tall: the wide one
  const float* b = nullptr;
  int m = 0, n = 0, k = 0;  // matmul_tall: m narrow columns, n wide ones, k rows
  int rows_of_block = 0, columns_of_block = 0;
  std::int64_t b_k = 0, b_n = 0;          // strides of b
  std::int64_t out_m = 0, out_n = 1;      // strides of the result
  Extent rows;                            // those with data
  bool packs_a = false, packs_b = false;  // four adjacent terms (matmul_tall: narrow columns) are aligned
  ProductEpilogue epilogue;
};

// The place of a thread in its block: the column within the tile, and which of `turns` rows is its first.
struct Place {
  int column, row, turns;
  __device__ explicit Place(int columns_of_block) {
    const int groups = columns_of_block / 4, thread = static_cast<int>(threadIdx.x);
    column = thread % groups * 4, row = thread / groups, turns = kThreads / groups;
  }
  __device__ bool is_used() const { return row < turns; }
};

// Loads N elements of a row, or of its first `left`; zeros past them.
template <bool kPacks, int N>
__device__ __forceinline__ void load_row(const float* from, int left, float (&to)[N]) {
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      float four[4] = {};
      if (!kPacks || i < left) load_columns(from + i, left - i, kPacks, four);
#pragma unroll
      for (int j = 0; j < 4; ++j) to[i + j] = four[j];
    }
  } else {
    to[0] = from[0];
  }
}

// kPacks: four adjacent elements are aligned, in the result and in the operands of the epilogue.
template <int kTerms, bool kBinary, bool kPacks>
__global__ void __launch_bounds__(kThreads) matmul_few_terms(FlatProduct p, float* out) {
  const int tiles = (p.n + p.columns_of_block - 1) / p.columns_of_block, block = static_cast<int>(blockIdx.x);
  const Place place(p.columns_of_block);
  const int column = block % tiles * p.columns_of_block + place.column, columns = p.n - column;
  const int begin = block / tiles * p.rows_of_block;
  const int end = begin + p.rows_of_block < p.m ? begin + p.rows_of_block : p.m;
  if (!place.is_used() || columns <= 0) return;
  float weights[kTerms][4], bias[4] = {};
#pragma unroll
  for (int l = 0; l < kTerms; ++l) {
#pragma unroll
    for (int j = 0; j < 4; ++j) weights[l][j] = l < p.k && j < columns ? p.b[l * p.b_k + (column + j) * p.b_n] : 0.0f;
  }
  if (p.epilogue.bias != nullptr) load_columns(p.epilogue.bias + column, columns, kPacks, bias);
  const auto live = static_cast<std::int64_t>(p.rows.valid());
  constexpr int kAhead = kTerms > 4 ? 2 : 4;  // rows whose operands are loaded together
  const auto multiply = [&](auto packs_a) {
    for (int first = begin + place.row; first < end; first += kAhead * place.turns) {
      float x[kAhead][kTerms], with[kAhead][4];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int row = first + i * place.turns < end ? first + i * place.turns : first;
        load_row<packs_a.value>(p.a + static_cast<std::int64_t>(row) * p.k, p.k, x[i]);
        if (kBinary)
          load_columns(p.epilogue.with + static_cast<std::int64_t>(row) * p.n + column, columns, kPacks, with[i]);
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int row = first + i * place.turns;
        if (row >= end) return;
        float sum[4] = {};
#pragma unroll
        for (int l = 0; l < kTerms; ++l) {
#pragma unroll
          for (int j = 0; j < 4; ++j) sum[j] = __fmaf_rn(x[i][l], weights[l][j], sum[j]);
        }
        finish_columns<kBinary>(p.epilogue, bias, with[i], row < live, sum);
        store_columns(sum, columns, kPacks, out + static_cast<std::int64_t>(row) * p.n + column);
      }
    }
  };
  p.packs_a ? multiply(std::true_type{}) : multiply(std::false_type{});
}

// Grid: (tiles, splits). `out` is (splits, m, n). kPacks: four adjacent elements of the wide factor are aligned.
template <int kNarrow, bool kPacks>
__global__ void __launch_bounds__(kThreads) matmul_tall(FlatProduct p, float* out) {
  const Place place(p.columns_of_block);
  const int column = static_cast<int>(blockIdx.x) * p.columns_of_block + place.column, columns = p.n - column;
  const bool used = place.is_used() && columns > 0;
  const auto live = static_cast<int>(p.rows.valid());
  const int begin = static_cast<int>(blockIdx.y) * p.rows_of_block;
  const int end = begin + p.rows_of_block < live ? begin + p.rows_of_block : live;
  float sum[kNarrow][4] = {};
  constexpr int kAhead = kNarrow > 1 ? 4 : 8;  // rows that are loaded together
  const auto add = [&](auto packs_b) {
    const auto add_rows = [&](int first, auto whole) {
      float wide[kAhead][4], narrow[kAhead][kNarrow];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int row = first + i * place.turns;
        if (!whole.value && row >= end) break;
        load_columns(p.a + static_cast<std::int64_t>(row) * p.n + column, columns, kPacks, wide[i]);
        load_row<packs_b.value>(p.b + static_cast<std::int64_t>(row) * p.m, p.m, narrow[i]);
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (!whole.value && first + i * place.turns >= end) break;
#pragma unroll
        for (int l = 0; l < kNarrow; ++l) {
#pragma unroll
          for (int j = 0; j < 4; ++j) sum[l][j] = __fmaf_rn(narrow[i][l], wide[i][j], sum[l][j]);
        }
      }
    };
    int row = used ? begin + place.row : end;
    for (; row + (kAhead - 1) * place.turns < end; row += kAhead * place.turns) add_rows(row, std::true_type{});
    if (row < end) add_rows(row, std::false_type{});
  };
  p.packs_b ? add(std::true_type{}) : add(std::false_type{});
  __shared__ alignas(16) float parts[kThreads][4];
  out += static_cast<std::int64_t>(blockIdx.y) * p.m * p.n;
  const int groups = p.columns_of_block / 4;
#pragma unroll
  for (int i = 0; i < kNarrow; ++i) {
    if (i >= p.m) break;
    block_barrier();  // lanes may have had different numbers of rows
    store4(parts[threadIdx.x], sum[i]);
    __syncthreads();
    if (place.row > 0 || !used) continue;
    float total[4];
    load4(parts[threadIdx.x], total);
    for (int turn = 1; turn < place.turns; ++turn) {
      float part[4];
      load4(parts[static_cast<int>(threadIdx.x) + turn * groups], part);
#pragma unroll
      for (int j = 0; j < 4; ++j) total[j] += part[j];
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (j < columns) out[i * p.out_m + (column + j) * p.out_n] = total[j];
    }
  }
}

// kPacks: four adjacent terms are aligned.
template <int kColumns, bool kPacks>
__global__ void __launch_bounds__(kThreads) matmul_dots(FlatProduct p, float* out) {
  constexpr int kLanes = 8;
  __shared__ alignas(16) float b[MatmulPlan::kDots * kColumns];
  for (int i = static_cast<int>(threadIdx.x); i < p.k * kColumns; i += kThreads)
    b[i] = i % kColumns < p.n ? p.b[i / kColumns * p.b_k + i % kColumns * p.b_n] : 0.0f;
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int begin = static_cast<int>(blockIdx.x) * p.rows_of_block;
  const int end = begin + p.rows_of_block < p.m ? begin + p.rows_of_block : p.m;
  const auto live = static_cast<std::int64_t>(p.rows.valid());
  for (int first = begin; first < end; first += kThreads / kLanes) {
    const int row = first + static_cast<int>(threadIdx.x) / kLanes;
    const float* const from = p.a + static_cast<std::int64_t>(row < end ? row : begin) * p.k;
    float sum[kColumns] = {};
#pragma unroll 4
    for (int l = 4 * lane; l < p.k; l += 4 * kLanes) {
      float x[4];
      load_columns(from + l, p.k - l, kPacks, x);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (!kPacks && l + i >= p.k) break;
#pragma unroll
        for (int j = 0; j < kColumns; ++j) sum[j] = __fmaf_rn(x[i], b[(l + i) * kColumns + j], sum[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
#pragma unroll
      for (int width = kLanes / 2; width > 0; width /= 2) sum[j] += __shfl_xor_sync(0xffffffffu, sum[j], width);
      if (lane == 0 && row < end && j < p.n) out[static_cast<std::int64_t>(row) * p.n + j] = row < live ? sum[j] : 0.0f;
    }
  }
}

template <bool kBinary, bool kPacks>
void launch_few_terms(const FlatProduct& p, Launcher& launcher, Grid grid, float* out) {
  const auto kernel = p.k == 1   ? matmul_few_terms<1, kBinary, kPacks>
                      : p.k <= 4 ? matmul_few_terms<4, kBinary, kPacks>
                                 : matmul_few_terms<8, kBinary, kPacks>;
  launch(launcher, kernel, "matmul_few_terms", grid, kThreads, p, out);
}

template <bool kPacks>
void launch_tall(const FlatProduct& p, Launcher& launcher, Grid grid, float* out) {
  const auto kernel = p.m == 1 ? matmul_tall<1, kPacks> : p.m <= 4 ? matmul_tall<4, kPacks> : matmul_tall<8, kPacks>;
  launch(launcher, kernel, "matmul_tall", grid, kThreads, p, out);
}

template <bool kPacks>
void launch_dots(const FlatProduct& p, Launcher& launcher, Grid grid, float* out) {
  launch(launcher, p.n == 1 ? matmul_dots<1, kPacks> : matmul_dots<4, kPacks>, "matmul_dots", grid, kThreads, p, out);
}

}  // namespace

void launch_matmul_flat(const KernelArgs& args, const MatmulPlan& plan, const ProductEpilogue& epilogue,
                        Launcher& launcher, float* out) {
  const bool tall = plan.route == MatmulPlan::Route::tall;
  FlatProduct p;
  p.a = args.input<float>(0), p.b = args.input<float>(1);
  p.m = static_cast<int>(plan.m), p.n = static_cast<int>(plan.n), p.k = static_cast<int>(plan.k);
  p.b_k = plan.b_k, p.b_n = plan.b_n;
  p.rows_of_block = static_cast<int>(tall ? plan.split : plan.tile_m);
  p.columns_of_block = static_cast<int>(plan.tile_n);
  const auto rows = static_cast<std::uint64_t>(tall ? plan.k : plan.m);
  p.rows = extent_of(args, args.in_type[0], rows);
  p.epilogue = epilogue;
  Grid grid{static_cast<std::uint32_t>(plan.tiles_m() * plan.tiles_n()), static_cast<std::uint32_t>(plan.splits)};
  if (tall) {
    if (plan.n >= plan.m) {  // the right factor is the wide one
      std::swap(p.a, p.b);
      p.out_m = plan.n;
    } else {
      std::swap(p.m, p.n);
      p.out_m = 1, p.out_n = plan.n;
      p.columns_of_block = static_cast<int>(plan.tile_m);
    }
    p.packs_b = p.m % 4 == 0 && is_aligned(p.b, 16);
    const bool packs = p.n % 4 == 0 && is_aligned(p.a, 16);
    return packs ? launch_tall<true>(p, launcher, grid, out) : launch_tall<false>(p, launcher, grid, out);
  }
  p.packs_a = p.k % 4 == 0 && is_aligned(p.a, 16);
  if (plan.route == MatmulPlan::Route::dots)
    return p.packs_a ? launch_dots<true>(p, launcher, grid, out) : launch_dots<false>(p, launcher, grid, out);
  const bool packs =
      p.n % 4 == 0 && is_aligned(out, 16) && is_aligned(epilogue.with, 16) && is_aligned(epilogue.bias, 16);
  constexpr void (*kLaunch[2][2])(const FlatProduct&, Launcher&, Grid, float*) = {
      {launch_few_terms<false, false>, launch_few_terms<false, true>},
      {launch_few_terms<true, false>, launch_few_terms<true, true>}};
  kLaunch[epilogue.with != nullptr][packs](p, launcher, grid, out);
}

}  // namespace graphrun::cuda
