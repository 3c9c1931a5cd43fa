#include "session/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graphrun/elements.h"

namespace graphrun {

Statistics statistics(DType dtype, std::span<const std::byte> bytes) {
  return with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::size_t count = bytes.size() / sizeof(T);
    const auto each = [&](auto see) {
      for (std::size_t i = 0; i < count; ++i) see(static_cast<double>(load_element<T>(bytes, i)));
    };
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN(), kMax = std::numeric_limits<double>::infinity();
    double least = kMax, most = -kMax, sum = 0;
    std::size_t finite = 0, zeros = 0;
    each([&](double x) {
      if (!std::isfinite(x)) return;
      ++finite;
      zeros += x == 0 ? 1 : 0;
      least = std::min(least, x);
      most = std::max(most, x);
      sum += x;
    });
    if (count == 0) return Statistics{kNone, kNone, kNone, kNone, 0, 0};
    const auto all = static_cast<double>(count);
    const double nonfinite = static_cast<double>(count - finite) / all;
    if (finite == 0) return Statistics{kNone, kNone, kNone, kNone, 0, nonfinite};
    const double mean = sum / static_cast<double>(finite);
    double squares = 0;
    each([&](double x) {
      if (std::isfinite(x)) squares += (x - mean) * (x - mean);
    });
    const double std_dev = std::sqrt(squares / static_cast<double>(finite));
    return Statistics{least, most, mean, std_dev, static_cast<double>(zeros) / all, nonfinite};
  });
}

}  // namespace graphrun
