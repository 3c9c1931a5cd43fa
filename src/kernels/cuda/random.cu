// random.cu: random samples. base/random_bits.h defines their bits: the same as on a host.
#include "base/random_bits.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/params.h"
#include "kernels/cuda/launch.cuh"

namespace graphrun::cuda {
namespace {

struct Uniform {
  double low, high;
  __device__ float operator()(bits::u32 word, std::uint64_t) const { return bits::uniform(word, low, high); }
};
struct Normal {
  double mean, deviation;
  __device__ float operator()(bits::u32 word, std::uint64_t) const { return bits::normal(word, mean, deviation); }
};
struct Dropout {
  double rate;
  float kept;
  const float* x;  // may alias the result: each thread reads only elements that it writes
  __device__ float operator()(bits::u32 word, std::uint64_t i) const {
    return bits::unit(word) < rate ? 0.0f : x[i] / kept;
  }
};

// One thread per block of four words.
template <class F>
__global__ void draw_kernel(F f, std::uint64_t key, const std::uint64_t* step, Extent extent, bool aligned,
                            float* out) {
  const std::uint64_t valid = extent.valid();
  const std::uint64_t now = *step;
  for (std::uint64_t block = thread_index(); block * 4 < extent.all; block += thread_count()) {
    const std::uint64_t base = block * 4;
    const bits::Words words = bits::words(key, now, block);
    float result[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::uint64_t i = base + static_cast<std::uint64_t>(k);
      result[k] = i < valid ? f(words.w[k], i) : 0.0f;
    }
    if (aligned && base + 4 <= extent.all) {
      store4(out + base, result);
      continue;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (base + static_cast<std::uint64_t>(k) < extent.all) out[base + static_cast<std::uint64_t>(k)] = result[k];
    }
  }
}

template <class F>
void draw(const KernelArgs& args, Launcher& launcher, const char* name, int step_input, F f) {
  const auto count = static_cast<std::uint64_t>(args.out_type.shape.elements());
  if (count == 0) return;
  launch(launcher, draw_kernel<F>, name, linear_grid(launcher.machine(), (count + 3) / 4, 256), 256, f,
         args.params.as<RandomParams>().key, args.input<std::uint64_t>(step_input),
         extent_of(args, args.out_type, count), is_aligned(args.out, 16), args.output<float>());
}

void launch_uniform(const KernelArgs& args, Launcher& launcher) {
  const auto& p = args.params.as<RandomParams>();
  draw(args, launcher, "random_uniform", 0, Uniform{p.a, p.b});
}

void launch_normal(const KernelArgs& args, Launcher& launcher) {
  const auto& p = args.params.as<RandomParams>();
  draw(args, launcher, "random_normal", 0, Normal{p.a, p.b});
}

void launch_dropout(const KernelArgs& args, Launcher& launcher) {
  const double rate = args.params.as<RandomParams>().a;
  draw(args, launcher, "dropout", 1, Dropout{rate, static_cast<float>(1 - rate), args.input<float>(0)});
}

__global__ void permutation_kernel(std::uint64_t key, const std::uint64_t* step, std::uint64_t n, std::int32_t* out) {
  const std::uint64_t now = *step;
  for (std::uint64_t i = thread_index(); i < n; i += thread_count()) {
    out[i] = static_cast<std::int32_t>(bits::permuted(i, n, key, now));
  }
}
void launch_permutation(const KernelArgs& args, Launcher& launcher) {
  const auto n = static_cast<std::uint64_t>(args.out_type.shape.elements());
  if (n == 0) return;
  launch(launcher, permutation_kernel, "permutation", linear_grid(launcher.machine(), n, 256), 256,
         args.params.as<RandomParams>().key, args.input<std::uint64_t>(0), n, args.output<std::int32_t>());
}

}  // namespace

LaunchFn find_random(Op op) {
  if (op == family_op::random_uniform) return launch_uniform;
  if (op == family_op::random_normal) return launch_normal;
  if (op == Op::dropout) return launch_dropout;
  if (op == family_op::permutation) return launch_permutation;
  return nullptr;
}

}  // namespace graphrun::cuda
