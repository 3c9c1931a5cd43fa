// tensor.h: a dense row-major tensor in host memory, for inputs and results.
// Contract: owns its bytes. Throws Error if values do not fill the shape or elements<T>() has another dtype. A
// moved-from tensor is empty, like a default one. No thread rules: a plain value.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "graphrun/types.h"

namespace graphrun {

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return DType::u64;
  else {
    static_assert(std::is_same_v<T, std::uint8_t>, "boolean elements are read as std::uint8_t, 0 or 1");
    return DType::boolean;
  }
}

class HostTensor {
 public:
  HostTensor() : HostTensor(DType::f32, Shape{0}) {}
  HostTensor(DType dtype, Shape shape)
      : dtype_(dtype), shape_(shape), bytes_(static_cast<std::size_t>(shape.elements()) * size_of(dtype)) {}
  HostTensor(Shape shape, std::span<const float> values) : HostTensor(DType::f32, shape) {
    if (values.size() != elements<float>().size()) reject_count(values.size());
    if (!values.empty()) std::memcpy(bytes_.data(), values.data(), bytes_.size());
  }
  HostTensor(const HostTensor&) = default;
  HostTensor(HostTensor&& other) noexcept : HostTensor() { swap(other); }
  HostTensor& operator=(const HostTensor&) = default;
  HostTensor& operator=(HostTensor&& other) noexcept {
    HostTensor moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~HostTensor() = default;

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  template <class T>
  std::span<T> elements() {
    check(dtype_of<T>());
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> elements() const {
    check(dtype_of<T>());
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  void check(DType wanted) const {
    if (wanted != dtype_) reject_dtype(wanted);
  }
  [[noreturn]] GRAPHRUN_API void reject_count(std::size_t given) const;
  [[noreturn]] GRAPHRUN_API void reject_dtype(DType wanted) const;

  void swap(HostTensor& other) noexcept {
    std::swap(dtype_, other.dtype_);
    std::swap(shape_, other.shape_);
    bytes_.swap(other.bytes_);
  }

  DType dtype_;
  Shape shape_;
  std::vector<std::byte> bytes_;
};

}  // namespace graphrun
