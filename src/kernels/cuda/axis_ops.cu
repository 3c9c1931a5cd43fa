// axis_ops.cu: softmax, log_softmax and softmax_cross_entropy along one axis, line by line, in three passes: the
// maximum, the sum of exp(x - maximum), the result. Depending on its length, a line is processed by one thread, several
// lanes of a warp, or a block, which fixes the order of its sum.
#include "graphrun/family_op.h"
#include "graphrun/params.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/dims.h"
#include "kernels/scalar_functions.h"

namespace graphrun::cuda {
namespace {

constexpr std::uint32_t kThreads = 256;

// Element j of line i is at first(i) + j * stride.
struct Lines {
  const float* in = nullptr;
  Dims<1> kept;
  std::uint64_t count = 0, size = 0, stride = 1;
  Extent valid;  // subset of count

  __device__ std::uint64_t first(std::uint64_t line) const {
    return static_cast<std::uint64_t>(kept.offset(static_cast<std::int64_t>(line)));
  }
};

// ---- threads that share a line: rank() of size(); all_reduce() returns the same bits to all of them ----------------

template <int kLanes>
struct Lanes {
  __device__ static unsigned rank() { return threadIdx.x % kLanes; }
  __device__ static unsigned size() { return kLanes; }
  __device__ static unsigned groups() { return blockDim.x / kLanes; }
  __device__ static unsigned group() { return threadIdx.x / kLanes; }
  template <class Combine>
  __device__ static float all_reduce(float value, Combine combine) {
#pragma unroll
    for (int apart = kLanes / 2; apart > 0; apart /= 2)
      value = combine(value, __shfl_xor_sync(0xffffffffu, value, apart));
    return value;
  }
};

struct Block {
  __device__ static unsigned rank() { return threadIdx.x; }
  __device__ static unsigned size() { return blockDim.x; }
  __device__ static unsigned groups() { return 1; }
  __device__ static unsigned group() { return 0; }
  template <class Combine>
  __device__ static float all_reduce(float value, Combine combine) {
    __shared__ float partial[32];
    value = Lanes<32>::all_reduce(value, combine);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
    block_barrier();
    value = partial[0];
    for (unsigned w = 1; w < blockDim.x / 32; ++w) value = combine(value, partial[w]);
    block_barrier();  // all have read before the next call writes
    return value;
  }
};

template <class Group>
__device__ float sum_of(float value) {
  return Group::all_reduce(value, [](float x, float y) { return x + y; });
}

// ---- results of a line --------------------------------------------------------------------------------------------

// sum exp(x) = exp(top) * total. If top is not finite, total is NaN or 0, and results follow from that.
struct LogSum {
  float top, total;
};

// `size` is 0 for lines past the batch: all threads of a warp must call.
template <class Group>
__device__ LogSum log_sum(const float* x, std::uint64_t stride, std::uint64_t size) {
  float top = -infinity();
  for (std::uint64_t j = Group::rank(); j < size; j += Group::size()) top = larger(top, x[j * stride]);
  top = Group::all_reduce(top, [](float x, float y) { return larger(x, y); });
  float total = 0.0f;
  for (std::uint64_t j = Group::rank(); j < size; j += Group::size()) total += scalar::exp(x[j * stride] - top);
  return {top, sum_of<Group>(total)};
}

// `out` may alias the operand: each thread writes only elements that no other thread reads.
template <bool kLog>
struct Softmax {
  float* out;

  template <class Group>
  __device__ void run(const Lines& lines, std::uint64_t line, bool inside, bool valid) const {
    const std::uint64_t first = inside ? lines.first(line) : 0;
    const float* x = lines.in + first;
    const LogSum sum = log_sum<Group>(x, lines.stride, valid ? lines.size : 0);
    if (!inside) return;
    const float rest = kLog ? scalar::log(sum.total) : 0.0f;
    for (std::uint64_t j = Group::rank(); j < lines.size; j += Group::size()) {
      const std::uint64_t at = j * lines.stride;
      float result = 0.0f;
      if (valid) result = kLog ? (x[at] - sum.top) - rest : scalar::exp(x[at] - sum.top) / sum.total;
      out[first + at] = result;
    }
  }
};

// A class with target 0 adds nothing; an invalid class index gives NaN.
template <class Target>
struct CrossEntropy {
  const Target* target;
  float* out;

  template <class Group>
  __device__ void run(const Lines& lines, std::uint64_t line, bool inside, bool valid) const {
    const std::uint64_t size = valid ? lines.size : 0;
    const std::uint64_t first = inside ? line * lines.size : 0;
    const float* x = lines.in + first;
    const LogSum sum = log_sum<Group>(x, 1, size);
    const float rest = scalar::log(sum.total);
    float loss = 0.0f;
    if constexpr (std::is_same_v<Target, std::int32_t>) {
      if (valid) {
        const std::int64_t wanted = target[line];
        const bool known = wanted >= 0 && static_cast<std::uint64_t>(wanted) < size;
        loss = known ? rest - (x[wanted] - sum.top) : __int_as_float(0x7fc00000);
      }
    } else {
      for (std::uint64_t j = Group::rank(); j < size; j += Group::size()) {
        const float t = target[first + j];
        if (t != 0.0f) loss += t * (rest - (x[j] - sum.top));
      }
      loss = sum_of<Group>(loss);
    }
    if (inside && Group::rank() == 0) out[line] = loss;
  }
};

template <class Group, class Op>
__global__ void __launch_bounds__(1024) lines_kernel(Lines lines, Op op) {
  const std::uint64_t valid = lines.valid.valid();
  const std::uint64_t stride = static_cast<std::uint64_t>(gridDim.x) * Group::groups();
  for (std::uint64_t base = static_cast<std::uint64_t>(blockIdx.x) * Group::groups(); base < lines.count;
       base += stride) {
    const std::uint64_t line = base + Group::group();
    op.template run<Group>(lines, line, line < lines.count, line < valid);
  }
}

// ---- launch -------------------------------------------------------------------------------------------------------

template <class Group, class Op>
void launch_groups(const Lines& lines, std::uint64_t threads_each, std::uint32_t threads, const char* name, Op op,
                   Launcher& launcher) {
  const Grid grid = linear_grid(launcher.machine(), lines.count * threads_each, threads);
  launch(launcher, lines_kernel<Group, Op>, name, grid, threads, lines, op);
}

template <class Op>
void launch_lines(const Lines& lines, const char* name, Op op, Launcher& launcher) {
  const std::uint64_t size = lines.size;
  if (lines.stride > 1) {  // lines are adjacent in memory: one thread per line, if there are enough lines
    if (size <= 32 || lines.count >= 4096) return launch_groups<Lanes<1>>(lines, 1, kThreads, name, op, launcher);
    return launch_groups<Block>(lines, kThreads, kThreads, name, op, launcher);
  }
  if (size <= 2) return launch_groups<Lanes<1>>(lines, 1, kThreads, name, op, launcher);
  if (size <= 4) return launch_groups<Lanes<4>>(lines, 4, kThreads, name, op, launcher);
  if (size <= 16) return launch_groups<Lanes<16>>(lines, 16, kThreads, name, op, launcher);
  if (size <= 1024) return launch_groups<Lanes<32>>(lines, 32, kThreads, name, op, launcher);
  const std::uint32_t threads = size <= 16384 ? kThreads : 1024;
  launch_groups<Block>(lines, threads, threads, name, op, launcher);
}

Lines lines_of(const KernelArgs& args, int axis) {
  const View x = dense(args.in_type[0].shape);
  Lines lines;
  lines.in = args.input<float>(0);
  lines.kept = AxisGroups<1>({x}, 1u << axis).kept;
  lines.count = static_cast<std::uint64_t>(lines.kept.count);
  lines.size = static_cast<std::uint64_t>(x.extents[axis]);
  lines.stride = static_cast<std::uint64_t>(x.strides[axis]);
  lines.valid = extent_of(args, args.in_type[0], lines.count);
  return lines;
}

template <bool kLog>
void launch_softmax(const KernelArgs& args, Launcher& launcher) {
  const Lines lines = lines_of(args, args.params.as<AxisParams>().axis);
  if (lines.count == 0 || lines.size == 0) return;
  launch_lines(lines, kLog ? "log_softmax" : "softmax", Softmax<kLog>{args.output<float>()}, launcher);
}

void launch_cross_entropy(const KernelArgs& args, Launcher& launcher) {
  const Lines lines = lines_of(args, args.in_type[0].shape.rank() - 1);
  if (lines.count == 0) return;
  float* out = args.output<float>();
  const char* name = "softmax_cross_entropy";
  if (args.in_type[1].dtype == DType::i32)
    return launch_lines(lines, name, CrossEntropy<std::int32_t>{args.input<std::int32_t>(1), out}, launcher);
  launch_lines(lines, name, CrossEntropy<float>{args.input<float>(1), out}, launcher);
}

}  // namespace

LaunchFn find_lines(Op op) {
  if (op == family_op::softmax) return launch_softmax<false>;
  if (op == family_op::log_softmax) return launch_softmax<true>;
  if (op == family_op::softmax_cross_entropy) return launch_cross_entropy;
  return nullptr;
}

}  // namespace graphrun::cuda
