// accuracy.h: sweeps of scalar functors against std:: in double: how far they are off, in units of the last place.
// Contract: a wrong NaN, infinity or sign of zero is an error beyond any bound. A sweep takes the functor as
// `float apply(float x, float a, float b)` or `float apply(float x, float y)`, and the bound.
// Leaves to others: which functors (scalar_ops_test.cpp, fast_functions_test.cpp).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>

namespace graphrun::accuracy {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr double kNever = 1e30;
inline constexpr double kSlack = 1e-7;  // double rounds too

// Distance in units of the last place of `want` as a float; kNever for a wrong NaN, infinity or sign of zero.
inline double ulps(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : kNever;
  if (std::isnan(got)) return kNever;
  const auto rounded = static_cast<float>(want);
  if (std::isinf(rounded) || std::isinf(got)) {
    if (rounded == got) return 0;
    const bool at_the_edge = std::min(std::fabs(want), std::fabs(static_cast<double>(got))) > 3.40282e38;
    return at_the_edge && std::signbit(want) == std::signbit(got) ? 1 : kNever;
  }
  if (rounded == 0 && got == 0) return std::signbit(rounded) == std::signbit(got) ? 0 : kNever;
  int exponent = 0;
  std::frexp(want, &exponent);
  return std::fabs(static_cast<double>(got) - want) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// A gradient's x lies between these: what the activation gives, or where it is not subnormal.
struct Range {
  float low, high;
};
inline const std::map<std::string, Range> kRanges = {{"square_gradient", {-0x1p126f, 0x1p126f}},
                                                     {"tanh_gradient", {-1, 1}},
                                                     {"sigmoid_gradient", {0, 1}},
                                                     {"softplus_gradient", {-87, kInf}}};

struct Worst {
  double error = 0;
  float x = 0, y = 0, got = 0;
  double want = 0;
  void see(float vx, float vy, float vgot, double vwant) {
    const double e = ulps(vgot, vwant);
    if (e > error) *this = {e, vx, vy, vgot, vwant};
  }
};

inline constexpr float kSpecial[] = {
    0.0f,    -0.0f,  1.0f,   -1.0f,     0.5f,     -0.5f,      1.5f,       2.5f,        -2.5f, kInf,
    -kInf,   kNan,   1e-45f, -1e-45f,   1.2e-38f, 3.4e38f,    -3.4e38f,   88.7f,       88.8f, -87.4f,
    -104.0f, 1e5f,   -1e5f,  100001.0f, 1e22f,    8388607.5f, 8388608.0f, 16777216.0f, 3.0f,  -3.0f,
    0.25f,   -0.75f, 1.e-4f, -1e-4f,    0x1p-13f, 0x1p-25f,   0.625f,     -15.0f,      15.0f, 200.0f};

// The largest error found.
template <class Apply, class Reference>
double sweep_unary(const std::string& op, double bound, Apply apply, Reference reference, std::uint32_t stride = 8191) {
  const float a = -0.3f;  // slope, alpha, low
  const float b = 1.7f;   // high
  Worst worst;
  const auto see = [&](float x) {
    worst.see(x, 0, apply(x, a, b), reference(static_cast<double>(x), static_cast<double>(a), static_cast<double>(b)));
  };
  for (std::uint64_t i = 0; i < (std::uint64_t{1} << 32); i += stride)
    see(std::bit_cast<float>(static_cast<std::uint32_t>(i)));
  for (int i = -120000; i < 120000; ++i) see(static_cast<float>(i) * 1e-3f);
  for (const float x : kSpecial) see(x);
  EXPECT_LE(worst.error, bound + kSlack) << op << "(" << worst.x << ") = " << worst.got << ", should be " << worst.want;
  return worst.error;
}

template <class Apply, class Reference>
double sweep_binary(const std::string& op, double bound, Apply apply, Reference reference, unsigned seed = 7) {
  Worst worst;
  const auto range = kRanges.find(op);
  const auto see = [&](float x, float y) {
    if (range != kRanges.end() && (x < range->second.low || x > range->second.high)) return;
    worst.see(x, y, apply(x, y), reference(static_cast<double>(x), static_cast<double>(y)));
  };
  std::mt19937 random(seed);
  for (int i = 0; i < 400000; ++i) {
    std::uint32_t x = static_cast<std::uint32_t>(random());
    std::uint32_t y = static_cast<std::uint32_t>(random());
    if (i % 2 == 1) {  // x near 1 and moderate y: what any pattern hardly ever gives
      x = (x & 0x80ffffffu) | 0x3f000000u;
      y = (y & 0x87ffffffu) | 0x40000000u;
    }
    if (i % 4 == 3) y &= 0xfff00000u;  // small integers among them
    see(std::bit_cast<float>(x), std::bit_cast<float>(y));
  }
  for (const float x : kSpecial)
    for (const float y : kSpecial) see(x, y);
  EXPECT_LE(worst.error, bound + kSlack) << op << "(" << worst.x << ", " << worst.y << ") = " << worst.got
                                         << ", should be " << worst.want;
  return worst.error;
}

}  // namespace graphrun::accuracy
