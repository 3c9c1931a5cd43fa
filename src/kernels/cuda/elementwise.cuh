// elementwise.cuh: out[i] = f(a[i], b[i], c[i]) with broadcasting: one kernel per functor.
// Contract: operands are read by their strides, if they have any. `out` may alias an operand with Access::same. Rows
// past the count become zero. Each thread processes four elements, in one access if the operand's layout and alignment
// permit.
#pragma once

#include <initializer_list>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layout.h"

namespace graphrun::cuda {

struct None {};  // type of an absent operand

struct Elementwise {
  Extent extent;
  Operand operand[3];
  bool aligned = false;  // the result's alignment
};

template <class T>
struct Four {
  T at[4];
};

// Rare paths are functions, shared by all operands of a kernel, which halves compile time. Arguments are passed by
// value: in a graph, compute-sanitizer does not recognize addresses of kernel parameters.
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
        for (int i = 0; i < 4; ++i) four.at[i] = i == k ? value : four.at[i];  // registers cannot be indexed
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

// Layout of the result and of the operands from `first` on. packs: the alignment of four elements of the result, then
// of each operand. Not a template, since it is the same for every kernel.
Elementwise elementwise_of(const KernelArgs& args, int first, std::initializer_list<std::uint64_t> packs);

// `first`: index of operand A; the others follow it.
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
