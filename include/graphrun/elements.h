// elements.h: the elements of a tensor whatever their dtype.
// Contract: with_type() and with_elements() call f once and give what it returns, which has one type for all dtypes;
// booleans are std::uint8_t.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "graphrun/tensor.h"

namespace graphrun {

// f(a value of the dtype's type).
template <class F>
auto with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::u64:
      return f(std::uint64_t{});
    case DType::boolean:
      return f(std::uint8_t{});
  }
  throw std::logic_error("with_type: no dtype");
}

// f(the tensor's elements as a span of their type).
template <class Tensor, class F>
auto with_elements(Tensor& tensor, F f) {
  return with_type(tensor.dtype(), [&](auto zero) { return f(tensor.template elements<decltype(zero)>()); });
}

// Element i of unaligned bytes.
template <class T>
T load_element(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

inline std::vector<double> as_doubles(const HostTensor& tensor) {
  return with_elements(tensor, [](const auto values) { return std::vector<double>(values.begin(), values.end()); });
}
// `values` fill the shape and are converted to the dtype.
inline HostTensor from_doubles(std::span<const double> values, const TensorType& type) {
  HostTensor tensor(type.dtype, type.shape);
  with_elements(tensor, [&]<class T>(std::span<T> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<T>(values[i]);
  });
  return tensor;
}

// The same number; of a NaN without its sign, which means nothing and would be printed.
template <class T>
T unsigned_nan(T value) {
  return value == value ? value : std::numeric_limits<T>::quiet_NaN();
}

// Index of element i along each axis.
inline std::vector<std::int64_t> index_of(const Shape& shape, std::size_t i) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  auto rest = static_cast<std::int64_t>(i);
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = rest % shape[axis];
    rest /= shape[axis];
  }
  return index;
}

}  // namespace graphrun
