#include "session/weights/initial_values.h"

#include <cmath>
#include <vector>

#include "base/philox.h"
#include "graph/frontend/builder_impl.h"
#include "graphrun/elements.h"

namespace graphrun {

HostTensor initial_value(const Init& init, std::string_view name, const TensorType& type, std::uint64_t seed) {
  if (init.kind == Init::Kind::values)
    return init.tensor.dtype() == type.dtype ? init.tensor : from_doubles(as_doubles(init.tensor), type);
  const Shape& shape = type.shape;
  if (init.kind == Init::Kind::constant)
    return from_doubles(std::vector<double>(static_cast<std::size_t>(shape.elements()), init.a), type);
  HostTensor tensor(DType::f32, shape);
  const std::span<float> out = tensor.elements<float>();
  const Stream stream = Stream::named(seed, name);
  switch (init.kind) {
    case Init::Kind::normal:
      fill_normal(stream, 0, init.a, init.b, out);
      break;
    case Init::Kind::uniform:
      fill_uniform(stream, 0, init.a, init.b, out);
      break;
    case Init::Kind::nguyen_widrow: {
      const double last = static_cast<double>(out.size()) - 1, size = 0.7 * static_cast<double>(out.size());
      for (std::size_t i = 0; i < out.size(); ++i) {
        const double place = last > 0 ? 2 * static_cast<double>(i) / last - 1 : 0;
        out[i] = static_cast<float>(shape.rank() == 1 ? size * place : size);
      }
      break;
    }
    default: {
      const int rank = shape.rank();
      const FanInit& kind = *fan_init(init.kind);
      const double fans = static_cast<double>(shape[rank - 2] + (kind.in_and_out ? shape[rank - 1] : 0)) * init.a;
      const double limit = std::sqrt(3 * kind.gain / fans);
      if (kind.normal)
        fill_normal(stream, 0, 0, std::sqrt(kind.gain / fans), out);
      else
        fill_uniform(stream, 0, -limit, limit, out);
    }
  }
  return type.dtype == DType::f32 ? tensor : from_doubles(as_doubles(tensor), type);
}

}  // namespace graphrun
