// matmul_many.cu: several products in one launch: operands with leading dimensions, either of them broadcast. Each
// element is one sum, added in order.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matmul_plan.h"

namespace graphrun::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kRows = 8;  // rows of a tile that a block of 256 threads covers at a time

struct Products {
  const float* a = nullptr;
  const float* b = nullptr;
  std::uint64_t m = 0, n = 0, k = 0;
  std::uint64_t a_m = 0, a_k = 0, b_k = 0, b_n = 0;
  Dims<2> leading;
  Extent matrices;

  // Finds the operands of matrix `index`.
  __device__ void locate(std::uint64_t index, const float*& from_a, const float*& from_b) const {
    const Offsets<2> at = leading.offsets(static_cast<std::int64_t>(index));
    from_a = a + at[0];
    from_b = b + at[1];
  }
};

__global__ void matmul_many_elements(Products p, float* out) {
  const std::uint64_t valid = p.matrices.valid();
  for (std::uint64_t i = thread_index(); i < p.matrices.all * p.m * p.n; i += thread_count()) {
    const std::uint64_t row = divide(i, p.n);  // over all matrices
    const std::uint64_t matrix = divide(row, p.m);
    float sum = 0.0f;
    if (matrix < valid) {
      const float* a = nullptr;
      const float* b = nullptr;
      p.locate(matrix, a, b);
      a += (row - matrix * p.m) * p.a_m;
      b += (i - row * p.n) * p.b_n;
#pragma unroll 4
      for (std::uint64_t l = 0; l < p.k; ++l) sum = __fmaf_rn(a[l * p.a_k], b[l * p.b_k], sum);
    }
    out[i] = sum;
  }
}

// Loads a tile of an operand: to[l][i] = from[(first + i) * step_i + (begin + l) * step_l], zero outside. Adjacent
// threads read along whichever of the two is dense.
__device__ void load_tile(const float* from, std::uint64_t first, std::uint64_t size, std::uint64_t step_i,
                          std::uint64_t begin, std::uint64_t terms, std::uint64_t step_l,
                          float (&to)[kTile][kTile + 1]) {
  const unsigned x = threadIdx.x % kTile;
  const bool along_l = step_l == 1;
  for (unsigned y = threadIdx.x / kTile; y < kTile; y += kRows) {
    const unsigned i = along_l ? y : x, l = along_l ? x : y;
    const bool inside = first + i < size && begin + l < terms;
    to[l][i] = inside ? from[(first + i) * step_i + (begin + l) * step_l] : 0.0f;
  }
}

// Each thread computes 4 elements of one column of the tile.
__global__ void __launch_bounds__(256) matmul_many_tiles(Products p, float* out) {
  __shared__ float tile_a[kTile][kTile + 1];
  __shared__ float tile_b[kTile][kTile + 1];
  const std::uint64_t valid = p.matrices.valid();
  const std::uint64_t tiles_m = (p.m + kTile - 1) / kTile;
  const std::uint64_t tiles_n = (p.n + kTile - 1) / kTile;
  const unsigned x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  for (std::uint64_t t = blockIdx.x; t < tiles_m * tiles_n * p.matrices.all; t += gridDim.x) {
    const std::uint64_t rest = divide(t, tiles_n);
    const std::uint64_t matrix = divide(rest, tiles_m);
    const std::uint64_t row = (rest - matrix * tiles_m) * kTile;
    const std::uint64_t column = (t - rest * tiles_n) * kTile;
    float sum[kTile / kRows] = {};
    if (matrix < valid) {
      const float* a = nullptr;
      const float* b = nullptr;
      p.locate(matrix, a, b);
      for (std::uint64_t begin = 0; begin < p.k; begin += kTile) {
        load_tile(a, row, p.m, p.a_m, begin, p.k, p.a_k, tile_a);
        load_tile(b, column, p.n, p.b_n, begin, p.k, p.b_k, tile_b);
        __syncthreads();
        const auto terms = static_cast<int>(p.k - begin < kTile ? p.k - begin : kTile);
        for (int l = 0; l < terms; ++l) {
#pragma unroll
          for (int i = 0; i < kTile / kRows; ++i) {
            sum[i] = __fmaf_rn(tile_a[l][y + static_cast<unsigned>(i) * kRows], tile_b[l][x], sum[i]);
          }
        }
        __syncthreads();  // the tiles have been read
      }
    }
#pragma unroll
    for (int i = 0; i < kTile / kRows; ++i) {
      const std::uint64_t r = row + y + static_cast<unsigned>(i) * kRows;
      if (r < p.m && column + x < p.n) out[(matrix * p.m + r) * p.n + column + x] = sum[i];
    }
  }
}

}  // namespace

void launch_matmul_many(const KernelArgs& args, const MatmulPlan& plan, Launcher& launcher) {
  const auto u64 = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  const Products p{args.input<float>(0),
                   args.input<float>(1),
                   u64(plan.m),
                   u64(plan.n),
                   u64(plan.k),
                   u64(plan.a_m),
                   u64(plan.a_k),
                   u64(plan.b_k),
                   u64(plan.b_n),
                   plan.leading,
                   extent_of(args, args.out_type, u64(plan.leading.count))};
  const Machine& machine = launcher.machine();
  if (plan.route == MatmulPlan::Route::many_elements) {
    launch(launcher, matmul_many_elements, "matmul_many_elements",
           linear_grid(machine, p.matrices.all * p.m * p.n, 128), 128, p, args.output<float>());
    return;
  }
  const std::uint64_t tiles = (p.m + kTile - 1) / kTile * ((p.n + kTile - 1) / kTile) * p.matrices.all;
  launch(launcher, matmul_many_tiles, "matmul_many_tiles", linear_grid(machine, tiles, 1), 256, p,
         args.output<float>());
}

}  // namespace graphrun::cuda
