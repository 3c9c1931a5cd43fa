// sources.cu: which rows a step sees, and what it leaves behind: minibatch, row_count, increment, record.
// The counter is read on the device: a captured step picks other rows each time it runs.
#include "kernels/cuda/launch.cuh"

namespace graphrun::cuda {
namespace {

struct Batches {
  std::uint64_t total = 0, capacity = 0, batches = 1;

  __device__ std::uint64_t number(std::uint64_t step) const { return step % batches; }
  __device__ std::uint64_t count(std::uint64_t number) const {
    const std::uint64_t left = total - number * capacity;
    return left < capacity ? left : capacity;
  }
};

Batches batches_of(const KernelArgs& args) {
  const auto& params = std::get<MinibatchParams>(args.params);
  return {static_cast<std::uint64_t>(params.total), static_cast<std::uint64_t>(params.capacity),
          static_cast<std::uint64_t>(params.batches() > 0 ? params.batches() : 1)};
}

template <class Unit>
__global__ void minibatch_kernel(const Unit* data, const std::uint64_t* step, Batches batches, std::uint64_t row,
                                 std::uint64_t all, Unit* out) {
  const std::uint64_t number = batches.number(*step);
  const std::uint64_t live = batches.count(number) * row;
  const Unit* from = data + number * batches.capacity * row;
  for (std::uint64_t i = thread_index(); i < all; i += thread_count()) out[i] = i < live ? from[i] : Unit{};
}

// `row`: bytes of a sample.
template <class Unit>
void copy_batch(const KernelArgs& args, Launcher& launcher, std::uint64_t row) {
  const Batches batches = batches_of(args);
  const std::uint64_t units = row / sizeof(Unit);
  const std::uint64_t all = batches.capacity * units;
  launch(launcher, minibatch_kernel<Unit>, "minibatch", linear_grid(launcher.machine(), all, 256), 256,
         args.input<Unit>(0), args.input<std::uint64_t>(1), batches, units, all, args.output<Unit>());
}

void launch_minibatch(const KernelArgs& args, Launcher& launcher) {
  const auto& params = std::get<MinibatchParams>(args.params);
  const std::uint64_t bytes = args.out_type.bytes();
  if (bytes == 0) return;
  const std::uint64_t row = bytes / static_cast<std::uint64_t>(params.capacity);
  const auto fits = [&](std::uint64_t unit) {
    return row % unit == 0 && is_aligned(args.in[0], unit) && is_aligned(args.out, unit);
  };
  if (fits(16)) return copy_batch<uint4>(args, launcher, row);
  if (fits(4)) return copy_batch<std::uint32_t>(args, launcher, row);
  copy_batch<std::uint8_t>(args, launcher, row);
}

__global__ void row_count_kernel(const std::uint64_t* step, Batches batches, std::int32_t* out) {
  *out = static_cast<std::int32_t>(batches.count(batches.number(*step)));
}
void launch_row_count(const KernelArgs& args, Launcher& launcher) {
  launch(launcher, row_count_kernel, "row_count", Grid{}, 1, args.input<std::uint64_t>(0), batches_of(args),
         args.output<std::int32_t>());
}

__global__ void increment_kernel(const std::uint64_t* in, std::uint64_t* out) {
  *out = *in + 1;
}
void launch_increment(const KernelArgs& args, Launcher& launcher) {
  launch(launcher, increment_kernel, "increment", Grid{}, 1, args.input<std::uint64_t>(0),
         args.output<std::uint64_t>());
}

__global__ void record_kernel(const float* value, const std::uint64_t* step, std::uint64_t size, float* ring) {
  ring[*step % size] = *value;
}
void launch_record(const KernelArgs& args, Launcher& launcher) {
  launch(launcher, record_kernel, "record", Grid{}, 1, args.input<float>(1), args.input<std::uint64_t>(2),
         static_cast<std::uint64_t>(args.out_type.shape[0]), args.output<float>());
}

}  // namespace

LaunchFn find_sources(std::string_view op) {
  if (op == "minibatch") return launch_minibatch;
  if (op == "row_count") return launch_row_count;
  if (op == "increment") return launch_increment;
  if (op == "record") return launch_record;
  return nullptr;
}

}  // namespace graphrun::cuda
