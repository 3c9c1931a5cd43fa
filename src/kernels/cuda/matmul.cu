// matmul.cu: products with a small extent, and sums over rows; everything wide goes to the matrix library, several
// products at a time to matmul_many.cu.
// The order of every sum is fixed by the plan: terms of a thread in order, then the warp's tree, then warps in order,
// then splits in order.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul_plan.h"

namespace graphrun::cuda {
namespace {

constexpr int kTileM = MatmulPlan::kTileM;
constexpr int kTileN = MatmulPlan::kTileN;
constexpr int kWarp = 32;
static_assert(kTileM * kTileN == kWarp, "a lane ends with one element of the tile");

struct Product {
  const float* a = nullptr;
  const float* b = nullptr;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_m = 0, a_k = 0, b_k = 0, b_n = 0;
  Extent rows;                            // of m
  Extent terms;                           // of k
  bool packs_a = false, packs_b = false;  // a tile's operands are neighbours and aligned
};

__global__ void matmul_elements(Product p, float* out) {
  const auto rows = p.rows.valid();
  const auto terms = static_cast<std::int64_t>(p.terms.valid());
  const auto count = static_cast<std::uint64_t>(p.m * p.n);
  for (std::uint64_t i = thread_index(); i < count; i += thread_count()) {
    const std::uint64_t row = divide(i, static_cast<std::uint64_t>(p.n));
    const std::uint64_t column = i - row * static_cast<std::uint64_t>(p.n);
    float sum = 0.0f;
    if (row < rows) {
      const float* a = p.a + static_cast<std::int64_t>(row) * p.a_m;
      const float* b = p.b + static_cast<std::int64_t>(column) * p.b_n;
#pragma unroll 4
      for (std::int64_t l = 0; l < terms; ++l) sum = __fmaf_rn(a[l * p.a_k], b[l * p.b_k], sum);
    }
    out[i] = sum;
  }
}

// `count` neighbours at `stride`, zero past `left`.
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

// Grid: (tiles, splits). `out` is (splits, m, n): the result itself when there is one split.
__global__ void __launch_bounds__(256) matmul_blocks(Product p, std::int64_t split, float* out) {
  const auto tiles_n = static_cast<std::uint32_t>((p.n + kTileN - 1) / kTileN);
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x / tiles_n) * kTileM;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x % tiles_n) * kTileN;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * split;
  const auto terms = static_cast<std::int64_t>(p.terms.valid());
  const std::int64_t end = begin + split < terms ? begin + split : terms;

  float sum[kWarp] = {};
#pragma unroll 2
  for (std::int64_t l = begin + threadIdx.x; l < end; l += blockDim.x) {
    float a[kTileM], b[kTileN];
    load(p.a + row * p.a_m + l * p.a_k, p.a_m, p.m - row, p.packs_a, a);
    load(p.b + column * p.b_n + l * p.b_k, p.b_n, p.n - column, p.packs_b, b);
#pragma unroll
    for (int i = 0; i < kTileM; ++i) {
#pragma unroll
      for (int j = 0; j < kTileN; ++j) sum[i * kTileN + j] = __fmaf_rn(a[i], b[j], sum[i * kTileN + j]);
    }
  }

  // A transposing tree: after the round of width w a lane keeps the half of the elements that its bit w names.
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned warp = threadIdx.x / kWarp;
#pragma unroll
  for (unsigned width = kWarp / 2; width > 0; width /= 2) {
#pragma unroll
    for (unsigned i = 0; i < width; ++i) {
      const bool upper = (lane & width) != 0;
      const float keep = upper ? sum[i + width] : sum[i];
      const float give = upper ? sum[i] : sum[i + width];
      sum[i] = keep + __shfl_xor_sync(0xffffffffu, give, static_cast<int>(width));
    }
  }
  __shared__ float partial[8][kWarp];
  partial[warp][lane] = sum[0];
  __syncthreads();
  if (warp != 0) return;
  float total = partial[0][lane];
  for (unsigned w = 1; w < blockDim.x / kWarp; ++w) total += partial[w][lane];
  const std::int64_t i = row + lane / kTileN;
  const std::int64_t j = column + lane % kTileN;
  if (i >= p.m || j >= p.n) return;
  if (static_cast<std::uint64_t>(i) >= p.rows.valid()) total = 0.0f;
  out[(static_cast<std::int64_t>(blockIdx.y) * p.m + i) * p.n + j] = total;
}

__global__ void matmul_combine(const float* partial, std::int64_t splits, std::uint64_t count, float* out) {
  for (std::uint64_t i = thread_index(); i < count; i += thread_count()) {
    float sum = partial[i];
    for (std::int64_t s = 1; s < splits; ++s) sum += partial[static_cast<std::uint64_t>(s) * count + i];
    out[i] = sum;
  }
}

Product product_of(const KernelArgs& args, const MatmulPlan& plan, bool transpose_a) {
  Product p;
  p.a = args.input<float>(0);
  p.b = args.input<float>(1);
  p.m = plan.m;
  p.n = plan.n;
  p.k = plan.k;
  p.a_m = plan.a_m;
  p.a_k = plan.a_k;
  p.b_k = plan.b_k;
  p.b_n = plan.b_n;
  p.rows.all = static_cast<std::uint64_t>(plan.m);
  p.terms.all = static_cast<std::uint64_t>(plan.k);
  (transpose_a ? p.terms : p.rows) =
      extent_of(args, args.in_type[0], static_cast<std::uint64_t>(transpose_a ? plan.k : plan.m));
  p.packs_a = plan.a_m == 1 && plan.a_k % 4 == 0 && plan.m % kTileM == 0 && is_aligned(p.a, 16);
  p.packs_b = plan.b_n == 1 && plan.b_k % 4 == 0 && plan.n % kTileN == 0 && is_aligned(p.b, 16);
  return p;
}

}  // namespace

void launch_matmul(const KernelArgs& args, Launcher& launcher) {
  const auto& params = std::get<MatmulParams>(args.params);
  const MatmulPlan plan = plan_matmul(params, args.in_type[0], args.in_type[1], launcher.machine());
  const auto count = static_cast<std::uint64_t>(plan.m * plan.n);
  if (count == 0 || plan.leading.count == 0) return;
  auto* out = args.output<float>();
  if (plan.route == MatmulPlan::Route::library) {
    const Leading& leading = plan.leading;  // at most one dimension
    launcher.matmul({args.in[0], args.in[1], args.out, args.workspace, plan.m, plan.n, plan.k, params.transpose_a,
                     params.transpose_b, leading.count, leading.a_stride[0] * plan.m * plan.k,
                     leading.b_stride[0] * plan.k * plan.n, plan.m * plan.n});
    return;
  }
  if (plan.route == MatmulPlan::Route::many_elements || plan.route == MatmulPlan::Route::many_tiles) {
    launch_matmul_many(args, plan, launcher);
    return;
  }
  const Product p = product_of(args, plan, params.transpose_a);
  if (plan.route == MatmulPlan::Route::elements) {
    launch(launcher, matmul_elements, "matmul_elements", linear_grid(launcher.machine(), count, 128), 128, p, out);
    return;
  }
  const Grid grid{static_cast<std::uint32_t>(plan.tiles_m() * plan.tiles_n()), static_cast<std::uint32_t>(plan.splits)};
  float* partial = plan.splits > 1 ? static_cast<float*>(args.workspace) : out;
  launch(launcher, matmul_blocks, "matmul_blocks", grid, plan.threads, p, plan.split, partial);
  if (plan.splits > 1) {
    launch(launcher, matmul_combine, "matmul_combine", linear_grid(launcher.machine(), count, 128), 128, partial,
           plan.splits, count, out);
  }
}

}  // namespace graphrun::cuda
