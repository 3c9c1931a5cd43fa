// elementwise.cuh: out[i] = f(a[i], b[i], c[i]) with broadcasting: one kernel for each functor.
// Contract: operands are read by their strides, where they have some. `out` may be the address of an operand with
// Access::same; rows past the count become zero; four elements a thread, as one access where the operand's layout and
// address allow.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/layout.h"

namespace graphrun::cuda {

struct None {};  // the type of an operand that is not there

struct Elementwise {
  Extent extent;
  Operand operand[3];
  bool aligned = false;  // of the result
};

// Elements base .. base + live of the broadcast operand; base is a multiple of 4, live is 1 to 4.
template <class T>
__device__ void load(const Operand& operand, std::uint64_t base, int live, T (&to)[4]) {
  const T* from = static_cast<const T*>(operand.data);
  switch (operand.access) {
    case Access::same:
      if (operand.aligned && live == 4) return load4(from + base, to);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (k < live) to[k] = from[base + static_cast<std::uint64_t>(k)];
      }
      return;
    case Access::scalar: {
      const T value = from[0];
#pragma unroll
      for (int k = 0; k < 4; ++k) to[k] = value;
      return;
    }
    case Access::period: {
      std::uint64_t at = base - divide(base, operand.extent) * operand.extent;
      if (operand.aligned && operand.extent % 4 == 0) return load4(from + at, to);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        to[k] = from[at];
        if (++at == operand.extent) at = 0;
      }
      return;
    }
    case Access::repeat: {
      std::uint64_t at = divide(base, operand.extent);
      std::uint64_t inside = base - at * operand.extent;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (k < live) to[k] = from[at];
        if (++inside == operand.extent) {
          inside = 0;
          ++at;
        }
      }
      return;
    }
    case Access::strided:
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (k < live) to[k] = from[operand.dims.offset(static_cast<std::int64_t>(base) + k)];
      }
      return;
  }
}
__device__ inline void load(const Operand&, std::uint64_t, int, None (&)[4]) {}

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
        if (k >= live) continue;
        if constexpr (std::is_same_v<B, None>) {
          result[k] = f(a[k]);
        } else if constexpr (std::is_same_v<C, None>) {
          result[k] = f(a[k], b[k]);
        } else {
          result[k] = f(a[k], b[k], c[k]);
        }
      }
    }
    if (e.aligned && inside == 4) {
      store4(out + base, result);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (k < inside) out[base + static_cast<std::uint64_t>(k)] = result[k];
      }
    }
  }
}

// `first`: the operand that is A; those after it follow.
template <class F, class Out, class A, class B = None, class C = None>
void launch_elementwise(const KernelArgs& args, Launcher& launcher, const char* name, F f, int first = 0) {
  const auto count = static_cast<std::uint64_t>(args.out_type.shape.elements());
  if (count == 0) return;
  Elementwise e;
  e.extent = extent_of(args, args.out_type, count);
  e.aligned = is_aligned(args.out, alignof(Pack<Out>));
  const std::uint64_t packs[] = {alignof(Pack<A>), alignof(Pack<B>), alignof(Pack<C>)};
  const int operands = std::is_same_v<B, None> ? 1 : std::is_same_v<C, None> ? 2 : 3;
  for (int i = 0; i < operands; ++i) {
    View view = dense(args.in_type[first + i].shape);
    if (const std::int64_t* strides = args.in_strides[first + i])
      std::copy_n(strides, view.extents.rank(), view.strides);
    e.operand[i] = operand_of(view, args.out_type.shape, args.in[first + i]);
    e.operand[i].aligned = is_aligned(args.in[first + i], packs[i]);
  }
  constexpr std::uint32_t kThreads = 256;
  launch(launcher, elementwise_kernel<F, Out, A, B, C>, name,
         linear_grid(launcher.machine(), (count + 3) / 4, kThreads), kThreads, f, e, args.output<Out>());
}

struct Same {
  template <class T>
  __device__ T operator()(T value) const {
    return value;
  }
};

}  // namespace graphrun::cuda
