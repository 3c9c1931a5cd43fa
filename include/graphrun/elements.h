// elements.h: from a dtype to the C++ type of its elements.
// Contract: calls f once and gives what it returns, which has one type for all dtypes; booleans are std::uint8_t.
#pragma once

#include <cstdint>
#include <stdexcept>

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

}  // namespace graphrun
