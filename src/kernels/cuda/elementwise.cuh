// elementwise.cuh: out[i] = f(a[i], b[i], c[i]) with broadcasting: one kernel for each functor.
// Contract: operands are read by their strides, where they have some. `out` may be the address of an operand with
// Access::same; rows past the count become zero; four elements a thread, as one access where the operand's layout and
// address allow.
#pragma once

#include <initializer_list>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layout.h"

namespace graphrun::cuda {

struct None {};  // the type of an operand that is not there

struct Elementwise {
  Extent extent;
  Operand operand[3];
  bool aligned = false;  // of the result
};

template <class T>
struct Four {
  T at[4];
};

// What few calls meet are functions, one in a kernel for all its operands, which compiles in half the time. Arguments
// go by value: an address of a kernel's parameters is one that compute-sanitizer does not know in a graph.
template <class T>
__device__ __noinline__ Four<T> load_some(const T* from, int live) {
  Four<T> to = {};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < live) to.at[k] = from[k];
  }
  return to;
}
template <class T>
__device__ __noinline__ Four<T> load_period(const T* from, std::uint64_t extent, bool aligned, std::uint64_t base) {
  Four<T> to = {};
  std::uint64_t at = base - divide(base, extent) * extent;
  if (aligned && extent % 4 == 0) {
    load4(from + at, to.at);
    return to;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    to.at[k] = from[at];
    if (++at == extent) at = 0;
  }
  return to;
}
template <class T>
__device__ __noinline__ Four<T> load_repeat(const T* from, std::uint64_t extent, std::uint64_t base, int live) {
  Four<T> to = {};
  std::uint64_t at = divide(base, extent);
  std::uint64_t inside = base - at * extent;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < live) to.at[k] = from[at];
    if (++inside == extent) {
      inside = 0;
      ++at;
    }
  }
  return to;
}

// Elements base .. base + live of the broadcast operand; base is a multiple of 4, live is 1 to 4.
template <class T>
__device__ void load(const Operand& operand, std::uint64_t base, int live, T (&to)[4]) {
  const T* from = static_cast<const T*>(operand.data);
  Four<T> four;
  switch (operand.access) {
    case Access::same:
      if (operand.aligned && live == 4) return load4(from + base, to);
      four = load_some(from + base, live);
      break;
    case Access::scalar:
      four = {from[0], from[0], from[0], from[0]};
      break;
    case Access::period:
      four = load_period(from, operand.extent, operand.aligned, base);
      break;
    case Access::repeat:
      four = load_repeat(from, operand.extent, base, live);
      break;
    case Access::strided:
      four = {};
#pragma unroll 1
      for (int k = 0; k < live; ++k) {
        const T value = from[operand.dims.offset(static_cast<std::int64_t>(base) + k)];
#pragma unroll
        for (int i = 0; i < 4; ++i) four.at[i] = i == k ? value : four.at[i];  // an array in registers has no index
      }
      break;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) to[k] = four.at[k];
}
__device__ inline void load(const Operand&, std::uint64_t, int, None (&)[4]) {}

template <class T>
__device__ __noinline__ void store_some(T* to, Four<T> from, int inside) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < inside) to[k] = from.at[k];
  }
}

template <class F, class Out, class A, class B = None, class C = None>
__global__ void __launch_bounds__(256) elementwise_kernel(F f, Elementwise e, Out* out) {
  const std::uint64_t valid = e.extent.valid();
  const std::uint64_t all = e.extent.all;
  for (std::uint64_t group = thread_index(); group * 4 < all; group += thread_count()) {
    const std::uint64_t base = group * 4;
    const int inside = all - base < 4 ? static_cast<int>(all - base) : 4;
    const int live = base >= valid ? 0 : valid - base < 4 ? static_cast<int>(valid - base) : 4;
    Out result[4] = {};
    if (live > 0) {
      A a[4] = {};
      B b[4] = {};
      C c[4] = {};
      load(e.operand[0], base, live, a);
      load(e.operand[1], base, live, b);
      load(e.operand[2], base, live, c);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if constexpr (std::is_same_v<B, None>) {
          result[k] = f(a[k]);
        } else if constexpr (std::is_same_v<C, None>) {
          result[k] = f(a[k], b[k]);
        } else {
          result[k] = f(a[k], b[k], c[k]);
        }
        if (k >= live) result[k] = Out();
      }
    }
    if (e.aligned && inside == 4) {
      store4(out + base, result);
    } else {
      store_some<Out>(out + base, {result[0], result[1], result[2], result[3]}, inside);
    }
  }
}

// How the result and the operands from `first` on lie. packs: the alignment of four elements of the result, then of
// each operand. A function of its own, as it is the same for each kernel.
Elementwise elementwise_of(const KernelArgs& args, int first, std::initializer_list<std::uint64_t> packs);

// `first`: the operand that is A; those after it follow.
template <class F, class Out, class... Operands>
void launch_elementwise(const KernelArgs& args, Launcher& launcher, const char* name, F f, int first = 0) {
  const Elementwise e = elementwise_of(args, first, {alignof(Pack<Out>), alignof(Pack<Operands>)...});
  if (e.extent.all == 0) return;
  constexpr std::uint32_t kThreads = 256;
  launch(launcher, elementwise_kernel<F, Out, Operands...>, name,
         linear_grid(launcher.machine(), (e.extent.all + 3) / 4, kThreads), kThreads, f, e, args.output<Out>());
}

struct Same {
  template <class T>
  __device__ T operator()(T value) const {
    return value;
  }
};

}  // namespace graphrun::cuda
