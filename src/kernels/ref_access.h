// ref_access.h: how the reference kernels see operands: as doubles, by element number, with their valid rows only.
// Contract: see graphrun/kernel.h. Leaves to others: what the ops mean (ref*.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "graphrun/kernel.h"

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

// NaN becomes integer 0; what is out of range becomes the nearest end of it.
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

// ---- shapes and rows ----------------------------------------------------------------------------------------------

// The shape with only its valid rows.
inline Shape valid_shape(const KernelArgs& args, const TensorType& type) {
  Shape shape = type.shape;
  if (type.rows > 0) shape[0] = args.rows_of(type);
  return shape;
}

inline void clear_invalid_rows(const KernelArgs& args) {
  const i64 all = args.out_type.shape.elements();
  for (i64 i = valid_shape(args, args.out_type).elements(); i < all; ++i) out(args, i, 0);
}

// Where element `index` of the row-major space of `shape` lies in an operand that is broadcast to that shape.
inline i64 broadcast_index(const Shape& operand, const Shape& shape, i64 index) {
  i64 result = 0;
  i64 stride = 1;
  for (int d = shape.rank() - 1; d >= shape.rank() - operand.rank(); --d) {
    const i64 extent = operand[d - (shape.rank() - operand.rank())];
    if (extent != 1) result += index % shape[d] * stride;
    stride *= extent;
    index /= shape[d];
  }
  return result;
}

// out[i] = f(inputs at i), with broadcasting. An input of the output's own shape may be overwritten on the way.
template <class F>
void elementwise(const KernelArgs& args, F&& f) {
  const Shape shape = valid_shape(args, args.out_type);
  bool same[kMaxOperands];
  for (int k = 0; k < args.inputs; ++k) same[k] = args.in_type[k].shape == args.out_type.shape;
  const i64 n = shape.elements();
  for (i64 i = 0; i < n; ++i) {
    double x[kMaxOperands] = {};
    for (int k = 0; k < args.inputs; ++k)
      x[k] = in(args, k, same[k] ? i : broadcast_index(args.in_type[k].shape, shape, i));
    out(args, i, f(x[0], x[1], x[2]));
  }
  clear_invalid_rows(args);
}

// The input's axes told apart: row-major spaces of the kept and of the reduced ones (the others have extent 1 in them),
// and where element `index` of one of those spaces lies in the input.
struct Axes {
  Shape shape, kept, reduced;

  Axes(const Shape& of, std::uint32_t mask) : shape(of), kept(of), reduced(of) {
    for (int d = 0; d < shape.rank(); ++d) (mask >> d & 1u ? kept : reduced)[d] = 1;
  }
  i64 offset(const Shape& space, i64 index) const {
    i64 result = 0;
    i64 stride = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      result += index % space[d] * stride;
      index /= space[d];
      stride *= shape[d];
    }
    return result;
  }
};

}  // namespace graphrun::ref
