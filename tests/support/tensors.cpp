#include "support/tensors.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"

namespace graphrun::test {
namespace {

constexpr std::uint64_t kSeed = 20240607;

// Calls f with a span of the tensor's elements in their own type.
template <class Tensor, class F>
void visit(Tensor& tensor, F&& f) {
  switch (tensor.dtype()) {
    case DType::f32:
      return f(tensor.template elements<float>());
    case DType::f64:
      return f(tensor.template elements<double>());
    case DType::i32:
      return f(tensor.template elements<std::int32_t>());
    case DType::u64:
      return f(tensor.template elements<std::uint64_t>());
    case DType::boolean:
      return f(tensor.template elements<std::uint8_t>());
  }
}

}  // namespace

HostTensor tensor_of(DType dtype, const Shape& shape, const std::vector<double>& values) {
  HostTensor tensor(dtype, shape);
  visit(tensor, [&](auto elements) {
    using T = typename decltype(elements)::value_type;
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<T>(values[i % values.size()]);
  });
  return tensor;
}

HostTensor random_tensor(DType dtype, const Shape& shape, double low, double high, std::string_view stream) {
  HostTensor tensor(dtype, shape);
  const Stream source = Stream::named(kSeed, stream);
  const auto count = static_cast<std::size_t>(shape.elements());
  std::vector<float> coarse(count);
  std::vector<float> fine(count);
  fill_uniform(source, 0, 0, 1, coarse);
  fill_uniform(source, 1, 0, 1, fine);
  visit(tensor, [&](auto elements) {
    using T = typename decltype(elements)::value_type;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const double unit = static_cast<double>(coarse[i]) + std::ldexp(static_cast<double>(fine[i]), -24);
      const double value = low + (high - low) * unit;
      if (tensor.dtype() == DType::boolean) {
        elements[i] = static_cast<T>(unit >= 0.5 ? 1 : 0);
      } else if (is_float(tensor.dtype())) {
        elements[i] = static_cast<T>(value);
      } else {
        elements[i] = static_cast<T>(std::floor(value));
      }
    }
  });
  return tensor;
}

std::vector<double> to_doubles(const HostTensor& tensor) {
  std::vector<double> values;
  visit(tensor, [&](auto elements) {
    for (const auto element : elements) values.push_back(static_cast<double>(element));
  });
  return values;
}

std::size_t valid_elements(const TensorType& type, std::int64_t samples) {
  if (type.rows == 0 || type.shape[0] == 0) return static_cast<std::size_t>(type.shape.elements());
  return static_cast<std::size_t>(type.shape.elements() / type.shape[0] * type.rows * samples);
}

void clear_rows(HostTensor& tensor, std::int64_t rows_per_sample, std::int64_t samples) {
  const std::size_t valid = valid_elements({tensor.dtype(), tensor.shape(), rows_per_sample}, samples);
  const auto bytes = tensor.bytes().subspan(valid * size_of(tensor.dtype()));
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
}

}  // namespace graphrun::test
