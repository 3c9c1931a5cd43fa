#include "base/student_t.h"

#include <cmath>
#include <numbers>

namespace graphrun {

// Finite series of the distribution function in the angle atan(t / sqrt(n)) (Abramowitz and Stegun, Handbook of
// Mathematical Functions, 26.7.3 and 26.7.4), inverted by bisection.
double student_t(double probability, std::size_t n) {
  const auto inside = [&](double angle) {
    const double cosine = std::cos(angle);
    const bool odd = n % 2 == 1;
    double term = odd ? cosine : 1, sum = n == 1 ? 0 : term;
    for (std::size_t i = odd ? 3 : 2; i < n && term > 1e-18; i += 2)
      sum += term *= cosine * cosine * static_cast<double>(i - 1) / static_cast<double>(i);
    return odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
  };
  double low = 0, high = std::numbers::pi / 2;
  for (int i = 0; i < 60; ++i) (inside((low + high) / 2) < probability ? low : high) = (low + high) / 2;
  return std::sqrt(static_cast<double>(n)) * std::tan(low);
}

}  // namespace graphrun
