// ref_access.h: how the reference kernels access operands: as doubles, by element index, valid rows only; their tables.
// Contract: see kernels/kernel.h; each op is in one table. Leaves to others: the meaning of ops (ref*.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/dims.h"
#include "kernels/kernel.h"

namespace graphrun::ref {

using i64 = std::int64_t;

// ---- elements as double -------------------------------------------------------------------------------------------

inline double load(const void* data, DType dtype, i64 i) {
  switch (dtype) {
    case DType::f32:
      return static_cast<const float*>(data)[i];
    case DType::f64:
      return static_cast<const double*>(data)[i];
    case DType::i32:
      return static_cast<const std::int32_t*>(data)[i];
    case DType::u64:
      return static_cast<double>(static_cast<const std::uint64_t*>(data)[i]);
    case DType::boolean:
      return static_cast<const std::uint8_t*>(data)[i];
  }
  return 0;
}

// NaN becomes 0; out-of-range values are clamped.
template <class T>
T to_integer(double x) {
  if (std::isnan(x)) return 0;
  if (x <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}

inline void store(void* data, DType dtype, i64 i, double x) {
  switch (dtype) {
    case DType::f32:
      static_cast<float*>(data)[i] = static_cast<float>(x);
      break;
    case DType::f64:
      static_cast<double*>(data)[i] = x;
      break;
    case DType::i32:
      static_cast<std::int32_t*>(data)[i] = to_integer<std::int32_t>(x);
      break;
    case DType::u64:
      static_cast<std::uint64_t*>(data)[i] = to_integer<std::uint64_t>(x);
      break;
    case DType::boolean:
      static_cast<std::uint8_t*>(data)[i] = x != 0;
      break;
  }
}

inline double in(const KernelArgs& args, int input, i64 i) {
  return load(args.in[input], args.in_type[input].dtype, i);
}
inline void out(const KernelArgs& args, i64 i, double x) {
  store(args.out, args.out_type.dtype, i, x);
}

// out[i] = f(inputs at i), with broadcasting. `out` may alias an input of the same shape.
template <class F>
void elementwise(const KernelArgs& args, F&& f) {
  const View to = args.output_view();
  View views[] = {to, to, to, to};
  for (int k = 0; k < args.inputs; ++k) views[k] = broadcast(args.input_view(k), to.extents);
  for_elements(merged(views), [&](i64, const Offsets<4>& at) {
    double x[3] = {};
    for (int k = 0; k < args.inputs; ++k) x[k] = in(args, k, at[k]);
    out(args, at[3], f(x[0], x[1], x[2]));
  });
  args.clear_invalid_rows();
}

// ---- tables -------------------------------------------------------------------------------------------------------

struct Entry {
  Op op;
  KernelFn kernel;
};

std::span<const Entry> reductions();  // sum … argmin, softmax and related ops
std::span<const Entry> movement();    // also cast, batches, counters, states and random samples

}  // namespace graphrun::ref
