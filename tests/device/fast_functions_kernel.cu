// One sweep for each op that has a bound of its own; the largest error of all threads, and where, by one atomic.
#include "fast_functions_kernel.h"

#include <cmath>

#include "kernels/cuda/tile/functions.h"

namespace {

namespace fast = graphrun::cuda::tile::fast;
namespace scalar = graphrun::scalar;
using Word = unsigned long long;

// As in scalar_ops/accuracy.h.
__device__ float ulps(float got, double want) {
  constexpr float kNever = 1e30f;
  if (isnan(want)) return isnan(got) ? 0 : kNever;
  if (isnan(got)) return kNever;
  const float rounded = static_cast<float>(want);
  if (isinf(rounded) || isinf(got)) {
    if (rounded == got) return 0;
    const bool at_the_edge = fmin(fabs(want), fabs(static_cast<double>(got))) > 3.40282e38;
    return at_the_edge && signbit(want) == signbit(got) ? 1 : kNever;
  }
  if (rounded == 0 && got == 0) return signbit(rounded) == signbit(got) ? 0 : kNever;
  int exponent = 0;
  frexp(want, &exponent);
  return static_cast<float>(fabs(static_cast<double>(got) - want) / ldexp(1.0, max(exponent - 24, -149)));
}

// splitmix64
__host__ __device__ Word drawn(Word i) {
  Word z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
// Half of the pairs any floats, half x near 1 and moderate y, what any floats hardly ever are; whole y among both.
__host__ __device__ void pair(Word i, unsigned& x, unsigned& y) {
  const Word bits = drawn(i);
  x = static_cast<unsigned>(bits);
  y = static_cast<unsigned>(bits >> 32);
  if (i % 2 == 1) {
    x = (x & 0x80ffffffu) | 0x3f000000u;
    y = (y & 0x87ffffffu) | 0x40000000u;
  }
  if (i % 4 == 3) y &= 0xfff00000u;
}

template <class Error>
__global__ void sweep(Word count, Word* worst) {
  Word mine = 0;  // the error's bits, which grow as it does, above the number
  const Word stride = static_cast<Word>(gridDim.x) * blockDim.x;
  for (Word i = static_cast<Word>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const Word error = static_cast<Word>(__float_as_uint(Error::at(i))) << 32 | i;
    mine = error > mine ? error : mine;
  }
  atomicMax(worst, mine);
}

#define GRAPHRUN_UNARY(name, Functor, ulps_, result, reference)                              \
  template <class T>                                                                         \
  struct Functor##Error {                                                                    \
    using Op = scalar::Functor;                                                              \
    static __device__ float at(Word i) {                                                     \
      const float value = __uint_as_float(static_cast<unsigned>(i));                         \
      const double x = value, a = -0.3f, b = 1.7f;                                           \
      (void)a, (void)b;                                                                      \
      return ulps(static_cast<float>(Op::template apply<T>(value, -0.3f, 1.7f)), reference); \
    }                                                                                        \
  };
GRAPHRUN_UNARY_OPS(GRAPHRUN_UNARY)
#undef GRAPHRUN_UNARY
#define GRAPHRUN_BINARY(name, Functor, ulps_, result, reference)                                                       \
  template <class T>                                                                                                   \
  struct Functor##Error {                                                                                              \
    using Op = scalar::Functor;                                                                                        \
    static __device__ float at(Word i) {                                                                               \
      unsigned x_bits, y_bits;                                                                                         \
      pair(i, x_bits, y_bits);                                                                                         \
      const double x = __uint_as_float(x_bits), y = __uint_as_float(y_bits);                                           \
      if (out_of_range<Op>(x)) return 0;                                                                               \
      return ulps(static_cast<float>(Op::template apply<T>(static_cast<float>(x), static_cast<float>(y))), reference); \
    }                                                                                                                  \
  };
template <class Op>
__device__ bool out_of_range(double) {
  return false;
}
template <>
__device__ bool out_of_range<scalar::SoftplusGradient>(double x) {
  return x < -87;
}
GRAPHRUN_BINARY_OPS(GRAPHRUN_BINARY)
#undef GRAPHRUN_BINARY

template <class Op>
constexpr bool kApproximate = false;
#define GRAPHRUN_APPROXIMATE(Functor, ulps_) \
  template <>                                \
  constexpr bool kApproximate<scalar::Functor> = true;
GRAPHRUN_FAST_BOUNDS(GRAPHRUN_APPROXIMATE)

// Appends one, if the op has a bound of its own; whether CUDA had no objection.
template <class Error>
bool measure(const char* name, bool unary, Word* worst, std::vector<FastFunctionError>& errors) {
  using Op = typename Error::Op;
  if constexpr (kApproximate<Op>) {
    Word found = 0;
    if (cudaMemcpy(worst, &found, sizeof found, cudaMemcpyHostToDevice) != cudaSuccess) return false;
    sweep<Error><<<2048, 256>>>(unary ? Word{1} << 32 : Word{1} << 26, worst);
    if (cudaMemcpy(&found, worst, sizeof found, cudaMemcpyDeviceToHost) != cudaSuccess) return false;
    unsigned x = static_cast<unsigned>(found), y = 0;
    if (!unary) pair(x, x, y);
    const unsigned error = static_cast<unsigned>(found >> 32);
    const auto number = [](unsigned bits) {
      float value;
      memcpy(&value, &bits, sizeof value);
      return value;
    };
    errors.push_back({name, fast::kUlps<Op>, number(error), number(x), number(y)});
  }
  return true;
}

}  // namespace

std::vector<FastFunctionError> fast_function_errors() {
  std::vector<FastFunctionError> errors;
  Word* worst = nullptr;
  bool good = cudaMalloc(&worst, sizeof *worst) == cudaSuccess;
#define GRAPHRUN_UNARY(name, Functor, ...) \
  good = good && measure<Functor##Error<fast::Float>>(#name, true, worst, errors);
#define GRAPHRUN_BINARY(name, Functor, ...) \
  good = good && measure<Functor##Error<fast::Float>>(#name, false, worst, errors);
  GRAPHRUN_UNARY_OPS(GRAPHRUN_UNARY)
  GRAPHRUN_BINARY_OPS(GRAPHRUN_BINARY)
  cudaFree(worst);
  return good ? errors : std::vector<FastFunctionError>();
}
