// approximations.h: host versions of the approximate functions of src/kernels/cuda/tile/ptx.h, with any error that the
// PTX ISA allows.
// Contract: the same arguments and the same Errors give the same result; by default the nearest float.
// Leaves to others: the rest of ptx.h (emulation/shim), the resulting errors (scalar_ops/fast_functions_test.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace graphrun::cuda::tile {

// Error of a result relative to the maximum: between low and high, determined by the argument and the seed.
struct Errors {
  double low = 0, high = 0;
  std::uint64_t seed = 0;
};
__attribute__((visibility("default"))) inline Errors errors;  // shared by the program and the kernels that it loads

namespace approximation {

constexpr double kSmallest = 0x1p-126;  // normal

inline double ulp(double x) {
  return std::ldexp(1.0, std::max(std::ilogb(std::max(kSmallest, std::abs(x))) - 23, -149));
}
inline double part(float x) {  // splitmix64
  std::uint32_t word = 0;
  std::memcpy(&word, &x, sizeof word);
  std::uint64_t z = (errors.seed << 32 | word) + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  const double drawn = static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  return errors.low + (errors.high - errors.low) * drawn;
}
// A float within the bound of y, for the argument x.
inline float within(double y, double bound, float x) {
  if (y == 0 || !std::isfinite(y) || !std::isfinite(static_cast<float>(y))) return static_cast<float>(y);
  auto near = static_cast<float>(y + part(x) * bound);
  if (std::fabs(static_cast<double>(near) - y) > bound) near = std::nextafter(near, static_cast<float>(y));
  return std::signbit(near) == std::signbit(y) ? near : std::copysign(0.0f, static_cast<float>(y));
}
inline float flushed(float x) {
  return std::fabs(x) < kSmallest ? std::copysign(0.0f, x) : x;
}

}  // namespace approximation

inline float ex2(float x) {
  const double y = std::exp2(static_cast<double>(approximation::flushed(x)));
  return approximation::flushed(approximation::within(y, 2 * approximation::ulp(y), x));
}
inline float lg2(float x) {
  const double y = std::log2(static_cast<double>(x));
  return approximation::within(y, x > 0.5f && x < 2.0f ? 0x1p-22 : std::fabs(y) * 0x1p-22, x);
}
inline float rcp(float x) {
  const double y = 1 / static_cast<double>(approximation::flushed(x));
  return approximation::flushed(approximation::within(y, approximation::ulp(y), x));
}
inline float div_full(float x, float y) {
  const double q = static_cast<double>(x) / static_cast<double>(y);
  return approximation::within(q, 2 * approximation::ulp(q), x + y);
}
inline float sqrt_approx(float x) {
  const double y = std::sqrt(static_cast<double>(x));
  return approximation::within(y, y * 0x1p-23, x);
}
inline float rsqrt_approx(float x) {
  const double y = 1 / std::sqrt(static_cast<double>(x));
  return approximation::within(y, y * std::exp2(-22.9), x);
}
inline float fma_saturated(float x, float y, float z) {
  const float sum = std::fma(x, y, z);
  return sum > 0.0f ? std::min(sum, 1.0f) : 0.0f;
}
inline float magnitude(float x) {
  return std::fabs(x);
}

}  // namespace graphrun::cuda::tile
