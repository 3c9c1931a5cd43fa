// reductions.cu: sums, products, extrema, their positions, and log(sum(exp)), over any axes. The plan fixes the order
// of terms: a thread's terms in order, then the block's tree, then splits in order. No atomics.
#include "graphrun/op.h"
#include "kernels/cuda/combine.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce_plan.h"
#include "kernels/scalar_functions.h"

namespace graphrun::cuda {
namespace {

// ---- reductions: State accumulates terms, start() is the state without terms --------------------------------------

struct Sum {
  using State = float;
  using Out = float;
  __device__ static State start() { return 0.0f; }
  __device__ static void add(State& s, float x, std::uint64_t) { s += x; }
  __device__ static State join(State a, State b) { return a + b; }
  __device__ static Out finish(State s) { return s; }
};
struct Product : Sum {
  __device__ static State start() { return 1.0f; }
  __device__ static void add(State& s, float x, std::uint64_t) { s *= x; }
  __device__ static State join(State a, State b) { return a * b; }
};
struct Largest : Sum {
  __device__ static State start() { return -infinity(); }
  __device__ static void add(State& s, float x, std::uint64_t) { s = larger(s, x); }
  __device__ static State join(State a, State b) { return larger(a, b); }
};
struct Smallest : Sum {
  __device__ static State start() { return infinity(); }
  __device__ static void add(State& s, float x, std::uint64_t) { s = smaller(s, x); }
  __device__ static State join(State a, State b) { return smaller(a, b); }
};

// sum exp(x) = exp(top) * sum. If top is not finite, it is the result.
struct LogSumExp {
  struct State {
    float top, sum;
  };
  using Out = float;
  __device__ static State start() { return {-infinity(), 0.0f}; }
  __device__ static void add(State& s, float x, std::uint64_t) { s = join(s, {x, 1.0f}); }
  __device__ static State join(State a, State b) {
    const float top = larger(a.top, b.top);
    if (!(fabsf(top) < infinity())) return {top, 0.0f};
    const float scale = scalar::exp(-fabsf(a.top - b.top));
    return {top, a.top >= b.top ? a.sum + b.sum * scale : a.sum * scale + b.sum};
  }
  __device__ static Out finish(State s) { return fabsf(s.top) < infinity() ? s.top + scalar::log(s.sum) : s.top; }
};

// Position of the largest or smallest term: the first among equals; NaN wins, and the first NaN among NaNs.
template <bool kLargest>
struct Position {
  struct State {
    float value;
    std::int32_t at;  // below 0: no term yet
  };
  using Out = std::int32_t;
  __device__ static State start() { return {0.0f, -1}; }
  __device__ static void add(State& s, float x, std::uint64_t j) { s = join(s, {x, static_cast<std::int32_t>(j)}); }
  __device__ static State join(State a, State b) {
    if (b.at < 0) return a;
    if (a.at < 0) return b;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan ? a : b;
    if (a_nan || a.value == b.value) return a.at < b.at ? a : b;
    return (kLargest ? a.value > b.value : a.value < b.value) ? a : b;
  }
  __device__ static Out finish(State s) { return s.at < 0 ? 0 : s.at; }
};

// ---- the kernels --------------------------------------------------------------------------------------------------

struct Reduction {
  const float* in = nullptr;
  Dims<1> kept, reduced;
  std::uint64_t count = 0;  // number of results
  Extent results, terms;
};

// Terms begin, begin + step, ... below end, in this order.
template <class R>
__device__ typename R::State fold(const Reduction& r, std::uint64_t result, std::uint64_t begin, std::uint64_t end,
                                  std::uint64_t step) {
  const float* from = r.in + r.kept.offset(static_cast<std::int64_t>(result));
  typename R::State state = R::start();
  if (r.reduced.rank == 1) {  // issue several loads before the first is needed
    constexpr int kAhead = 8;
    const auto stride = static_cast<std::uint64_t>(r.reduced.dim[0].stride[0]);
    for (; begin + (kAhead - 1) * step < end; begin += kAhead * step) {
      float x[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) x[i] = from[(begin + i * step) * stride];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) R::add(state, x[i], begin + i * step);
    }
#pragma unroll 4
    for (std::uint64_t i = begin; i < end; i += step) R::add(state, from[i * stride], i);
    return state;
  }
  for (std::uint64_t i = begin; i < end; i += step)
    R::add(state, from[r.reduced.offset(static_cast<std::int64_t>(i))], i);
  return state;
}

template <class State>
__device__ State shuffle_down(State state, int lanes) {
  constexpr int kWords = sizeof(State) / 4;
  static_assert(sizeof(State) == kWords * 4);
  std::uint32_t words[kWords];
  memcpy(words, &state, sizeof(State));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_down_sync(0xffffffffu, words[i], lanes);
  memcpy(&state, words, sizeof(State));
  return state;
}

// Joins the states of a warp, always in the same order; valid in lane 0.
template <class R>
__device__ typename R::State warp_join(typename R::State state) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) state = R::join(state, shuffle_down(state, lanes));
  return state;
}

// Destination of results: parts of a split sum go to `partial`, (splits, results), otherwise final results to `out`.
template <class R>
struct Target {
  typename R::State* partial = nullptr;
  typename R::Out* out = nullptr;

  __device__ void store(const Reduction& r, std::uint64_t split, std::uint64_t i, typename R::State state) const {
    if (partial != nullptr) {
      partial[split * r.count + i] = state;
    } else {
      out[i] = i < r.results.valid() ? R::finish(state) : typename R::Out{};
    }
  }
};

template <class R>
__global__ void reduce_elements(Reduction r, Target<R> to) {
  const std::uint64_t results = r.results.valid();
  const std::uint64_t terms = r.terms.valid();
  for (std::uint64_t i = thread_index(); i < r.count; i += thread_count()) {
    to.store(r, 0, i, i < results ? fold<R>(r, i, 0, terms, 1) : R::start());
  }
}

// Grid: (results, splits).
template <class R>
__global__ void __launch_bounds__(256) reduce_blocks(Reduction r, std::uint64_t split, Target<R> to) {
  const std::uint64_t results = r.results.valid();
  const std::uint64_t terms = r.terms.valid();
  const std::uint64_t begin = blockIdx.y * split;
  const std::uint64_t end = begin + split < terms ? begin + split : terms;
  __shared__ typename R::State partial[8];
  for (std::uint64_t i = blockIdx.x; i < r.count; i += gridDim.x) {
    const auto mine = i < results ? fold<R>(r, i, begin + threadIdx.x, end, blockDim.x) : R::start();
    __syncwarp();  // lanes may have had different numbers of terms
    const auto warp = warp_join<R>(mine);
    block_barrier();  // all threads have read the previous result's parts
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = warp;
    block_barrier();
    if (threadIdx.x == 0) {
      auto total = partial[0];
      for (unsigned w = 1; w < blockDim.x / 32; ++w) total = R::join(total, partial[w]);
      to.store(r, blockIdx.y, i, total);
    }
  }
}

// A block has 32 x 32 threads: thread (x, y) takes terms y, y + 32, ... of the block's result x.
template <class R>
__global__ void __launch_bounds__(1024) reduce_columns(Reduction r, std::uint64_t split, Target<R> to) {
  const std::uint64_t results = r.results.valid();
  const std::uint64_t terms = r.terms.valid();
  const std::uint64_t begin = blockIdx.y * split;
  const std::uint64_t end = begin + split < terms ? begin + split : terms;
  const unsigned x = threadIdx.x % 32, y = threadIdx.x / 32;
  __shared__ typename R::State partial[32][33];
  const std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * ReducePlan::kColumns + x;
  partial[y][x] = i < results ? fold<R>(r, i, begin + y, end, 32) : R::start();
  block_barrier();
  const auto total = warp_join<R>(partial[x][y]);  // warp y now holds the 32 parts of column y
  const std::uint64_t mine = static_cast<std::uint64_t>(blockIdx.x) * ReducePlan::kColumns + y;
  if (x == 0 && mine < r.count) to.store(r, blockIdx.y, mine, total);
}

template <class R>
__global__ void reduce_combine(Reduction r, const typename R::State* partial, std::uint64_t splits, Target<R> to) {
  for (std::uint64_t i = thread_index(); i < r.count; i += thread_count()) {
    auto total = partial[i];
#pragma unroll 8
    for (std::uint64_t s = 1; s < splits; ++s) total = R::join(total, partial[s * r.count + i]);
    to.store(r, 0, i, total);
  }
}

template <class R>
__global__ void __launch_bounds__(kCombineThreads)
    reduce_combine_many(Reduction r, const typename R::State* partial, std::uint64_t splits, Target<R> to) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * kCombineResults + threadIdx.x % kCombineResults;
  typename R::State total{};
  const auto join = [](typename R::State a, typename R::State b) { return R::join(a, b); };
  if (combine_parts(partial, splits, r.count, i, join, total)) to.store(r, 0, i, total);
}

template <class R>
void launch_reduction(const KernelArgs& args, Launcher& launcher) {
  using State = typename R::State;
  const std::uint32_t axes = reduced_axes(args.params);
  const ReducePlan plan = plan_reduce(axes, args.in_type[0].shape, launcher.machine(), sizeof(State));
  const auto count = static_cast<std::uint64_t>(plan.kept.count);
  if (count == 0) return;
  Reduction r;
  r.in = args.input<float>(0);
  const AxisGroups<1> groups({args.stored_view(0)}, axes);  // the plan has those of a dense operand
  r.kept = groups.kept;
  r.reduced = groups.reduced;
  r.count = r.results.all = count;
  r.terms.all = static_cast<std::uint64_t>(plan.reduced.count);
  const bool over_rows = (axes & 1u) != 0;
  (over_rows ? r.terms : r.results) = extent_of(args, args.in_type[0], over_rows ? r.terms.all : count);

  const Target<R> result{nullptr, args.output<typename R::Out>()};
  const Grid linear = linear_grid(launcher.machine(), count, 128);
  if (plan.route == ReducePlan::Route::elements)
    return launch(launcher, reduce_elements<R>, "reduce_elements", linear, 128, r, result);
  const std::uint64_t most = 1u << 30;
  const Grid grid{static_cast<std::uint32_t>(plan.blocks < most ? plan.blocks : most),
                  static_cast<std::uint32_t>(plan.splits)};
  auto* const parts = static_cast<State*>(args.workspace);
  const Target<R> first = plan.splits > 1 ? Target<R>{parts, nullptr} : result;
  const bool columns = plan.route == ReducePlan::Route::columns;
  launch(launcher, columns ? reduce_columns<R> : reduce_blocks<R>, columns ? "reduce_columns" : "reduce_blocks", grid,
         plan.threads, r, plan.split, first);
  if (plan.splits >= kManyParts) {
    launch(launcher, reduce_combine_many<R>, "reduce_combine", combine_grid(count), kCombineThreads, r, parts,
           plan.splits, result);
  } else if (plan.splits > 1)
    launch(launcher, reduce_combine<R>, "reduce_combine", linear, 128, r, parts, plan.splits, result);
}

}  // namespace

LaunchFn find_reductions(Op op) {
  if (op == Op::sum) return launch_reduction<Sum>;
  if (op == Op::prod) return launch_reduction<Product>;
  if (op == Op::max) return launch_reduction<Largest>;
  if (op == Op::min) return launch_reduction<Smallest>;
  if (op == Op::logsumexp) return launch_reduction<LogSumExp>;
  if (op == Op::argmax) return launch_reduction<Position<true>>;
  if (op == Op::argmin) return launch_reduction<Position<false>>;
  return nullptr;
}

}  // namespace graphrun::cuda
