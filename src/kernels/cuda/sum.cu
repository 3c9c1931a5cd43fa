// sum.cu: sums over any axes. The order of the additions is fixed by the plan: terms of a thread in order, then the
// tree of the block, then splits in order. No atomics.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce_plan.h"

namespace graphrun::cuda {
namespace {

struct Reduction {
  const float* in = nullptr;
  Axes kept, reduced;
  Extent results;  // of kept.count
  Extent terms;    // of reduced.count
};

__device__ std::uint64_t offset(const Axes& axes, std::uint64_t index) {
  if (axes.rank == 1) return index * axes.stride[0];
  std::uint64_t result = 0;
  for (int axis = axes.rank - 1; axis >= 0; --axis) {
    const std::uint64_t rest = divide(index, axes.extent[axis]);
    result += (index - rest * axes.extent[axis]) * axes.stride[axis];
    index = rest;
  }
  return result;
}

// Terms begin, begin + step, ... below end, in this order.
__device__ float sum_of(const Reduction& r, std::uint64_t result, std::uint64_t begin, std::uint64_t end,
                        std::uint64_t step) {
  const float* from = r.in + offset(r.kept, result);
  float sum = 0.0f;
#pragma unroll 4
  for (std::uint64_t i = begin; i < end; i += step) sum += from[offset(r.reduced, i)];
  return sum;
}

__global__ void sum_elements(Reduction r, float* out) {
  const std::uint64_t results = r.results.valid();
  const std::uint64_t terms = r.terms.valid();
  for (std::uint64_t i = thread_index(); i < r.kept.count; i += thread_count()) {
    out[i] = i < results ? sum_of(r, i, 0, terms, 1) : 0.0f;
  }
}

// Grid: (results, splits); `out` is (splits, results).
__global__ void __launch_bounds__(256) sum_blocks(Reduction r, std::uint64_t split, float* out) {
  const std::uint64_t results = r.results.valid();
  const std::uint64_t terms = r.terms.valid();
  const std::uint64_t begin = blockIdx.y * split;
  const std::uint64_t end = begin + split < terms ? begin + split : terms;
  __shared__ float partial[8];
  for (std::uint64_t i = blockIdx.x; i < r.kept.count; i += gridDim.x) {
    const float mine = i < results ? sum_of(r, i, begin + threadIdx.x, end, blockDim.x) : 0.0f;
    const float warp = warp_sum(mine);
    __syncthreads();  // the sums of the result before have been read
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = warp;
    __syncthreads();
    if (threadIdx.x == 0) {
      float total = partial[0];
      for (unsigned w = 1; w < blockDim.x / 32; ++w) total += partial[w];
      out[blockIdx.y * r.kept.count + i] = total;
    }
  }
}

// A block has 32 x 32 threads: thread (x, y) adds terms y, y + 32, ... of the block's result x.
__global__ void __launch_bounds__(1024) sum_columns(Reduction r, std::uint64_t split, float* out) {
  const std::uint64_t results = r.results.valid();
  const std::uint64_t terms = r.terms.valid();
  const std::uint64_t begin = blockIdx.y * split;
  const std::uint64_t end = begin + split < terms ? begin + split : terms;
  const unsigned x = threadIdx.x % 32, y = threadIdx.x / 32;
  __shared__ float partial[32][33];
  const std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * ReducePlan::kColumns + x;
  partial[y][x] = i < results ? sum_of(r, i, begin + y, end, 32) : 0.0f;
  __syncthreads();
  const float total = warp_sum(partial[x][y]);  // warp y now holds the 32 sums of column y
  const std::uint64_t mine = static_cast<std::uint64_t>(blockIdx.x) * ReducePlan::kColumns + y;
  if (x == 0 && mine < r.kept.count) out[blockIdx.y * r.kept.count + mine] = total;
}

__global__ void sum_combine(const float* partial, std::uint64_t splits, std::uint64_t count, float* out) {
  for (std::uint64_t i = thread_index(); i < count; i += thread_count()) {
    float sum = partial[i];
    for (std::uint64_t s = 1; s < splits; ++s) sum += partial[s * count + i];
    out[i] = sum;
  }
}

}  // namespace

void launch_sum(const KernelArgs& args, Launcher& launcher) {
  const auto& params = std::get<ReduceParams>(args.params);
  const ReducePlan plan = plan_reduce(params.axes, args.in_type[0].shape, launcher.machine());
  const std::uint64_t count = plan.kept.count;
  if (count == 0) return;
  Reduction r;
  r.in = args.input<float>(0);
  r.kept = plan.kept;
  r.reduced = plan.reduced;
  r.results.all = count;
  r.terms.all = plan.reduced.count;
  const bool over_rows = (params.axes & 1u) != 0;
  (over_rows ? r.terms : r.results) = extent_of(args, args.in_type[0], over_rows ? r.terms.all : count);

  auto* out = args.output<float>();
  if (plan.route == ReducePlan::Route::elements) {
    launch(launcher, sum_elements, "sum_elements", linear_grid(launcher.machine(), count, 128), 128, r, out);
    return;
  }
  const std::uint64_t most = 1u << 30;
  const Grid grid{static_cast<std::uint32_t>(plan.blocks < most ? plan.blocks : most),
                  static_cast<std::uint32_t>(plan.splits)};
  float* partial = plan.splits > 1 ? static_cast<float*>(args.workspace) : out;
  if (plan.route == ReducePlan::Route::columns) {
    launch(launcher, sum_columns, "sum_columns", grid, plan.threads, r, plan.split, partial);
  } else {
    launch(launcher, sum_blocks, "sum_blocks", grid, plan.threads, r, plan.split, partial);
  }
  if (plan.splits > 1) {
    launch(launcher, sum_combine, "sum_combine", linear_grid(launcher.machine(), count, 128), 128, partial, plan.splits,
           count, out);
  }
}

}  // namespace graphrun::cuda
