// matmul.cu: products with a small extent, and sums over rows. Products bound by memory go to matmul_flat.cu, wide ones
// to matmul_wide.cu or the matrix library, batched ones to matmul_many.cu. The plan fixes the order of every sum: a
// thread's terms in order, then the warp's tree, then warps in order, then splits in order.
#include "graphrun/params.h"
#include "kernels/cuda/combine.cuh"
#include "kernels/cuda/factor_view.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul_plan.h"
#include "kernels/cuda/product_epilogue.cuh"

namespace graphrun::cuda {
namespace {

constexpr int kTileM = 8;
constexpr int kWarp = 32;

struct Product {
  const float* a = nullptr;
  const float* b = nullptr;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_m = 0, a_k = 0, b_k = 0, b_n = 0;
  Extent rows = {};                       // limits m
  Extent terms = {};                      // limits k
  bool packs_a = false, packs_b = false;  // a tile's operands are contiguous and aligned
  bool shows_a = false;                   // a is the view below
  FactorView view = {};

  __device__ std::int64_t row(std::int64_t i) const {
    return shows_a ? view.rows.offset(static_cast<int>(i)) : i * a_m;
  }
  __device__ std::int64_t term(std::int64_t l) const {
    return shows_a ? view.terms.offset(static_cast<int>(l)) : l * a_k;
  }
};

__global__ void matmul_elements(Product p, ProductEpilogue e, float* out) {
  const auto rows = p.rows.valid();
  const auto terms = static_cast<std::int64_t>(p.terms.valid());
  const auto count = static_cast<std::uint64_t>(p.m * p.n);
  for (std::uint64_t i = thread_index(); i < count; i += thread_count()) {
    const std::uint64_t row = divide(i, static_cast<std::uint64_t>(p.n));
    const std::uint64_t column = i - row * static_cast<std::uint64_t>(p.n);
    float sum = 0.0f;
    if (row < rows) {
      const float* a = p.a + p.row(static_cast<std::int64_t>(row));
      const float* b = p.b + static_cast<std::int64_t>(column) * p.b_n;
#pragma unroll 4
      for (std::int64_t l = 0; l < terms; ++l) sum = __fmaf_rn(a[p.term(l)], b[l * p.b_k], sum);
      sum = stepped(e, i, static_cast<std::uint64_t>(p.n), sum);
    }
    out[i] = sum;
  }
}

// Loads N elements `stride` apart, zeros past `left`.
template <int N>
__device__ void load(const float* from, std::int64_t stride, std::int64_t left, bool packs, float (&to)[N]) {
  if (packs) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const float4 pack = *reinterpret_cast<const float4*>(from + i);
      to[i] = pack.x;
      to[i + 1] = pack.y;
      to[i + 2] = pack.z;
      to[i + 3] = pack.w;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = i < left ? from[i * stride] : 0.0f;
}

// One thread per row with at most kColumns columns; b and the places of a row's terms are in shared memory.
template <int kColumns>
__global__ void __launch_bounds__(128) matmul_rows(Product p, ProductEpilogue e, bool packs_out, float* out) {
  __shared__ alignas(16) float b[MatmulPlan::kSkinny][kColumns];
  __shared__ std::int64_t terms[MatmulPlan::kSkinny];
  const int n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  for (int i = static_cast<int>(threadIdx.x); i < k * kColumns; i += static_cast<int>(blockDim.x)) {
    const int l = i / kColumns, j = i % kColumns;
    b[l][j] = j < n ? p.b[l * p.b_k + j * p.b_n] : 0.0f;
    terms[l] = p.term(l);
  }
  __syncthreads();
  const std::uint64_t rows = p.rows.valid();
  for (std::uint64_t row = thread_index(); row < static_cast<std::uint64_t>(p.m); row += thread_count()) {
    float sum[kColumns] = {};
    if (row < rows) {
      const float* a = p.a + p.row(static_cast<std::int64_t>(row));
      int l = 0;
      for (; p.packs_a && l < k; l += 4) {
        const float4 pack = *reinterpret_cast<const float4*>(a + l);
        const float x[4] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
        for (int t = 0; t < 4; ++t) {
#pragma unroll
          for (int j = 0; j < kColumns; ++j) sum[j] = __fmaf_rn(x[t], b[l + t][j], sum[j]);
        }
      }
#pragma unroll 5
      for (; l < k; ++l) {
        const float x = a[terms[l]];
#pragma unroll
        for (int j = 0; j < kColumns; ++j) sum[j] = __fmaf_rn(x, b[l][j], sum[j]);
      }
    }
    if (e.steps && row < rows) apply_steps(e, static_cast<std::int64_t>(row) * p.n, 0, n, sum);
    float* to = out + static_cast<std::int64_t>(row) * p.n;
    if constexpr (kColumns % 4 == 0) {
      if (packs_out) {
#pragma unroll
        for (int j = 0; j < kColumns; j += 4) {
          *reinterpret_cast<float4*>(to + j) = make_float4(sum[j], sum[j + 1], sum[j + 2], sum[j + 3]);
        }
        continue;
      }
    }
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      if (j < n) to[j] = sum[j];
    }
  }
}

template <int kColumns>
void launch_rows(Product p, const ProductEpilogue& e, Launcher& launcher, float* out) {
  p.packs_a = !p.shows_a && p.a_k == 1 && p.a_m % 4 == 0 && p.k % 4 == 0 && is_aligned(p.a, 16);
  const bool packs_out = p.n == kColumns && is_aligned(out, 16);
  launch(launcher, matmul_rows<kColumns>, "matmul_rows",
         linear_grid(launcher.machine(), static_cast<std::uint64_t>(p.m), 128), 128, p, e, packs_out, out);
}

// Transposing trees over a warp, one for each 32 elements up to kPart + 32. After the round of width w, a lane keeps
// the half of the elements selected by its bit w; finally one element, in sum[kPart]. A template, so that elements stay
// in registers.
template <int kPart, int kWidth>
struct Tree {
  template <int kTile>
  __device__ __forceinline__ static void fold(float (&sum)[kTile], unsigned lane) {
    const bool upper = (lane & static_cast<unsigned>(kWidth)) != 0;
#pragma unroll
    for (int i = kPart; i < kPart + kWidth; ++i) {
      const float keep = upper ? sum[i + kWidth] : sum[i];
      const float give = upper ? sum[i] : sum[i + kWidth];
      sum[i] = keep + __shfl_xor_sync(0xffffffffu, give, kWidth);
    }
    if constexpr (kWidth > 1) {
      Tree<kPart, kWidth / 2>::fold(sum, lane);
    } else if constexpr (kPart > 0) {
      Tree<kPart - kWarp, kWarp / 2>::fold(sum, lane);
    }
  }
};

// Grid: (tiles, splits). `out` is (splits, m, n): the result itself if there is one split.
template <int kTileN, bool kView>
__global__ void __launch_bounds__(256) matmul_blocks(Product p, ProductEpilogue e, std::int64_t split, float* out) {
  constexpr int kTile = kTileM * kTileN;
  static_assert(kTile % kWarp == 0, "a lane ends with the same number of elements as any other");
  const auto tiles_n = static_cast<std::uint32_t>((p.n + kTileN - 1) / kTileN);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x / tiles_n) * kTileM;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x % tiles_n) * kTileN;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * split;
  const auto terms = static_cast<std::int64_t>(p.terms.valid());
  const std::int64_t end = begin + split < terms ? begin + split : terms;

  int rows[kTileM];  // places of the tile's rows
#pragma unroll
  for (int i = 0; kView && i < kTileM; ++i) rows[i] = p.view.rows.offset(static_cast<int>(row) + i);
  float sum[kTile] = {};
  constexpr int kAhead = kTile > 96 ? 2 : 4;  // limited by registers
#pragma unroll kAhead
  for (std::int64_t l = begin + threadIdx.x; l < end; l += blockDim.x) {
    float a[kTileM], b[kTileN];
    if constexpr (kView) {
      const float* const from = p.a + p.view.terms.offset(static_cast<int>(l));
#pragma unroll
      for (int i = 0; i < kTileM; ++i) a[i] = i < p.m - row ? from[rows[i]] : 0.0f;
    } else {
      load(p.a + row * p.a_m + l * p.a_k, p.a_m, p.m - row, p.packs_a, a);
    }
    load(p.b + column * p.b_n + l * p.b_k, p.b_n, p.n - column, p.packs_b, b);
#pragma unroll
    for (int i = 0; i < kTileM; ++i) {
#pragma unroll
      for (int j = 0; j < kTileN; ++j) sum[i * kTileN + j] = __fmaf_rn(a[i], b[j], sum[i * kTileN + j]);
    }
  }

  __syncwarp();  // lanes may have had different numbers of terms
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned warp = threadIdx.x / kWarp;
  __shared__ float partial[8][kTile];
  Tree<kTile - kWarp, kWarp / 2>::fold(sum, lane);
#pragma unroll
  for (int part = 0; part < kTile; part += kWarp) partial[warp][part + static_cast<int>(lane)] = sum[part];
  block_barrier();
  for (unsigned element = threadIdx.x; element < kTile; element += blockDim.x) {
    float total = partial[0][element];
    for (unsigned w = 1; w < blockDim.x / kWarp; ++w) total += partial[w][element];
    const std::int64_t i = row + element / kTileN;
    const std::int64_t j = column + element % kTileN;
    if (i >= p.m || j >= p.n) continue;
    total = stepped(e, static_cast<std::uint64_t>(i * p.n + j), static_cast<std::uint64_t>(p.n), total);
    if (static_cast<std::uint64_t>(i) >= p.rows.valid()) total = 0.0f;
    out[(static_cast<std::int64_t>(blockIdx.y) * p.m + i) * p.n + j] = total;
  }
}

// Results that are the sums of parts, (parts, m, n).
struct Parts {
  const float* partial = nullptr;
  std::uint64_t splits = 1, count = 0, n = 1;  // count: m n
  Extent rows = {};
  ProductEpilogue epilogue = {};

  __device__ void store(float* out, std::uint64_t i, float sum) const {
    out[i] = rows.count == nullptr || divide(i, n) < rows.valid() ? stepped(epilogue, i, n, sum) : 0.0f;
  }
};

__global__ void matmul_combine(Parts p, float* out) {
  for (std::uint64_t i = thread_index(); i < p.count; i += thread_count()) {
    float sum = p.partial[i];
#pragma unroll 8
    for (std::uint64_t s = 1; s < p.splits; ++s) sum += p.partial[s * p.count + i];
    p.store(out, i, sum);
  }
}

__global__ void __launch_bounds__(kCombineThreads) matmul_combine_many(Parts p, float* out) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * kCombineResults + threadIdx.x % kCombineResults;
  float sum = 0.0f;
  if (combine_parts(
          p.partial, p.splits, p.count, i, [](float a, float b) { return a + b; }, sum))
    p.store(out, i, sum);
}

Product product_of(const KernelArgs& args, const MatmulPlan& plan, bool transpose_a) {
  Product p{args.input<float>(0), args.input<float>(1), plan.m, plan.n, plan.k, plan.a_m, plan.a_k, plan.b_k, plan.b_n};
  p.rows.all = static_cast<std::uint64_t>(plan.m);
  p.terms.all = static_cast<std::uint64_t>(plan.k);
  (transpose_a ? p.terms : p.rows) =
      extent_of(args, args.in_type[0], static_cast<std::uint64_t>(transpose_a ? plan.k : plan.m));
  p.packs_a = plan.a_m == 1 && plan.a_k % 4 == 0 && plan.m % plan.tile_m == 0 && is_aligned(p.a, 16);
  p.packs_b = plan.b_n == 1 && plan.b_k % 4 == 0 && plan.n % plan.tile_n == 0 && is_aligned(p.b, 16);
  p.shows_a = args.in_strides[0] != nullptr;
  if (p.shows_a) p.view = *factor_view(args.stored_view(0), transpose_a ? plan.k : plan.m, transpose_a);
  return p;
}

void launch_rows(const Product& p, const ProductEpilogue& epilogue, Launcher& launcher, float* out) {
  constexpr void (*kLaunch[])(Product, const ProductEpilogue&, Launcher&, float*) = {
      launch_rows<4>,  launch_rows<8>,  launch_rows<12>, launch_rows<16>,
      launch_rows<20>, launch_rows<24>, launch_rows<28>, launch_rows<32>,
  };
  p.n == 1 ? launch_rows<1>(p, epilogue, launcher, out) : kLaunch[(p.n - 1) / 4](p, epilogue, launcher, out);
}

}  // namespace

void launch_matmul(const KernelArgs& args, Launcher& launcher) {
  launch_matmul(args, {}, launcher);
}

void launch_matmul(const KernelArgs& args, const ProductEpilogue& epilogue, Launcher& launcher) {
  const auto& params = args.params.as<MatmulParams>();
  const MatmulPlan plan =
      plan_matmul(params, args.in_type[0], args.in_type[1], launcher.machine(), args.in_strides[0] != nullptr);
  const auto count = static_cast<std::uint64_t>(plan.m * plan.n);
  if (count == 0 || plan.leading.count == 0) return;
  auto* out = args.output<float>();
  if (plan.route == MatmulPlan::Route::library) {
    const Dim<2> leading = plan.leading.rank > 0 ? plan.leading.dim[0] : Dim<2>{};  // at most one dimension
    launcher.matmul({args.in[0], args.in[1], args.out, args.workspace, plan.m, plan.n, plan.k, params.transpose_a,
                     params.transpose_b, leading.extent, leading.stride[0], leading.stride[1], plan.m * plan.n,
                     params.precision});
    return;
  }
  if (plan.route == MatmulPlan::Route::many_elements || plan.route == MatmulPlan::Route::many_tiles)
    return launch_matmul_many(args, plan, launcher);
  const Product p = product_of(args, plan, params.transpose_a);
  const Grid linear = linear_grid(launcher.machine(), count, 128);
  if (plan.route == MatmulPlan::Route::elements)
    return launch(launcher, matmul_elements, "matmul_elements", linear, 128, p, epilogue, out);
  if (plan.route == MatmulPlan::Route::rows) return launch_rows(p, epilogue, launcher, out);
  const ProductEpilogue whole = plan.splits > 1 ? ProductEpilogue{} : epilogue;
  float* partial = plan.splits > 1 ? static_cast<float*>(args.workspace) : out;
  if (plan.is_flat()) {
    launch_matmul_flat(args, plan, whole, launcher, partial);
  } else if (plan.route == MatmulPlan::Route::wide) {
    launch_matmul_wide(args, plan, whole, launcher, partial);
  } else {
    constexpr void (*kKernels[2][4])(Product, ProductEpilogue, std::int64_t, float*) = {
        {matmul_blocks<4, false>, matmul_blocks<8, false>, matmul_blocks<12, false>, matmul_blocks<16, false>},
        {matmul_blocks<4, true>, matmul_blocks<8, true>, matmul_blocks<12, true>, matmul_blocks<16, true>}};
    const Grid grid{plan.blocks(launcher.machine()), static_cast<std::uint32_t>(plan.splits)};
    launch(launcher, kKernels[p.shows_a][plan.tile_n / 4 - 1], "matmul_blocks", grid, plan.threads, p, whole,
           plan.split, partial);
  }
  const Parts parts{partial, static_cast<std::uint64_t>(plan.splits), count, static_cast<std::uint64_t>(plan.n), p.rows,
                    epilogue};
  if (parts.splits >= kManyParts) {
    launch(launcher, matmul_combine_many, "matmul_combine", combine_grid(count), kCombineThreads, parts, out);
  } else if (parts.splits > 1)
    launch(launcher, matmul_combine, "matmul_combine", linear, 128, parts, out);
}

}  // namespace graphrun::cuda
