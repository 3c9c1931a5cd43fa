// functions.h: the value type of `--math=fast`: with it, scalar ops (`scalar::Tanh::apply<fast::Float>`) use the fast
// approximations of ptx.h instead of long polynomials and exact quotients.
// Contract: as scalar_functions.h except for exact bits. The error is at most kUlps of the op on any device that
// conforms to the PTX ISA; NaN, infinities, zeros and subnormal inputs give the exact functions' results. + - * min,
// max and comparisons are exact. Leaves to others: functions not defined here; those of scalar_functions.h accept this
// type too.
#pragma once

#include "kernels/cuda/tile/ptx.h"
#include "kernels/scalar_ops.h"

namespace graphrun::cuda::tile::fast {

constexpr float kLog2E = 0x1.715476p+0f, kLog2ELow = 0x1.4ae0cp-26f;
constexpr float kLog2 = 0x1.62e43p-1f;

// Implements the interface of scalar_type.h.
struct Float {
  float value;
  Float() = default;
  GRAPHRUN_FN Float(float x) : value(x) {}
  GRAPHRUN_FN explicit operator float() const { return value; }

  friend GRAPHRUN_FN Float operator-(Float x) { return -x.value; }
  friend GRAPHRUN_FN Float operator+(Float x, Float y) { return x.value + y.value; }
  friend GRAPHRUN_FN Float operator-(Float x, Float y) { return x.value - y.value; }
  friend GRAPHRUN_FN Float operator*(Float x, Float y) { return x.value * y.value; }
  friend GRAPHRUN_FN Float operator/(Float x, Float y) { return div_full(x.value, y.value); }
  friend GRAPHRUN_FN bool operator==(Float x, Float y) { return x.value == y.value; }
  friend GRAPHRUN_FN bool operator!=(Float x, Float y) { return x.value != y.value; }
  friend GRAPHRUN_FN bool operator<(Float x, Float y) { return x.value < y.value; }
  friend GRAPHRUN_FN bool operator<=(Float x, Float y) { return x.value <= y.value; }
  friend GRAPHRUN_FN bool operator>(Float x, Float y) { return x.value > y.value; }
  friend GRAPHRUN_FN bool operator>=(Float x, Float y) { return x.value >= y.value; }
  friend GRAPHRUN_FN Float select(bool m, Float x, Float y) { return m ? x.value : y.value; }
  friend GRAPHRUN_FN Float min(Float x, Float y) { return scalar::min(x.value, y.value); }
  friend GRAPHRUN_FN Float max(Float x, Float y) { return scalar::max(x.value, y.value); }
  friend GRAPHRUN_FN int bits(Float x) { return scalar::bits(x.value); }
  friend GRAPHRUN_FN Float fma(Float x, Float y, Float z) { return scalar::fma(x.value, y.value, z.value); }
  friend GRAPHRUN_FN Float sqrt(Float x) { return sqrt_approx(x.value); }
  friend GRAPHRUN_FN Float rsqrt(Float x) { return rsqrt_approx(x.value); }

  // Building blocks of scalar_functions.h: these make sigmoid, silu, softplus, gelu, erf and pow fast unchanged.
  friend GRAPHRUN_FN Float abs(Float x) { return magnitude(x.value); }
  friend GRAPHRUN_FN Float quotient(Float x, Float y) { return x * rcp(y.value); }
  friend GRAPHRUN_FN Float exp_near(Float r) { return ex2((r * kLog2E).value); }
  friend GRAPHRUN_FN Float exp_within(Float x) { return exp(x); }

  // Ops that need exact quotients.
  friend GRAPHRUN_FN Float mod(Float x, Float y) { return scalar::mod(x.value, y.value); }
  friend GRAPHRUN_FN Float tan(Float x) { return scalar::tan(x.value); }

  // 2^n 2^f with n = x log2(e), rounded and clamped to [-126, 127]. If n was clamped, f is how far x is out of range.
  friend GRAPHRUN_FN Float exp(Float x) {
    constexpr float kMagic = scalar::kRoundMagic + 127.0f;  // leaves the exponent of 2^n in the low bits
    Float part = fma_saturated(x.value, kLog2E / 253.0f, 126.0f / 253.0f);
    Float shifted = fma(part, 253.0f, kMagic - 126.0f);
    Float n = shifted - kMagic;
    Float f = fma(x, kLog2ELow, fma(x, kLog2E, -n));
    return ex2(f.value) * scalar::from_bits(scalar::bits(shifted.value) << 23);
  }
  // log(1 + f), x = 1 + f. In (0.5, 2), where lg2 only bounds the absolute error, 2 artanh(t / 2) with t = f / (1 + f /
  // 2): t + t^3 p(t^2), relative error 4.5e-9.
  friend GRAPHRUN_FN Float log_of(Float f, Float x) {
    Float t = f * rcp(fma(f, 0.5f, 1.0f).value);
    Float z = t * t;
    Float p = scalar::horner(z, Float(0x1.555502p-4f), 0x1.99d20ep-7f, 0x1.1ebcb8p-9f, 0x1.1ed986p-11f);
    Float near = fma(t * z, p, t);
    Float far = lg2(x.value) * kLog2;
    return select(abs(f - 0.25f) < 0.75f, near, far);
  }
  // 1 - 2 / (1 + exp(2 |x|)), accurate for |x| above about 1/2; below, x + x^3 q(x^2), relative error 3.7e-8.
  friend GRAPHRUN_FN Float tanh(Float x) {
    Float a = abs(x);
    Float e = ex2((a * (2.0f * kLog2E)).value);
    Float far = fma(Float(rcp((e + 1.0f).value)), -2.0f, 1.0f);
    Float z = x * x;
    Float q = scalar::horner(z, Float(-0x1.555454p-2f), 0x1.10cf5ap-3f, -0x1.af873ap-5f, 0x1.0d7932p-6f);
    return scalar::copysign(select(a < 0.5494f, fma(q * z, x, x), far), x);
  }
  friend GRAPHRUN_FN Float log(Float x) { return log_of(x - 1.0f, x); }
  friend GRAPHRUN_FN Float log1p(Float x) { return log_of(x, 1.0f + x); }
};

// ---- bounds -------------------------------------------------------------------------------------------------------

// Maximum error in ulp, where it differs from the list of scalar ops (scalar_op_list.h). Div: a quotient on an H200 was
// off by 2.05, where the PTX ISA promises 2.
// clang-format off
#define GRAPHRUN_FAST_BOUNDS(X) \
  X(Div, 2.5) X(Reciprocal, 2) X(Sqrt, 2) X(Rsqrt, 2.5) X(Exp, 2.5) X(Log, 5) X(Log1p, 6) X(Tanh, 3) X(Sigmoid, 6) \
  X(Softplus, 5) X(SoftplusGradient, 6) X(Silu, 6) X(Gelu, 8) X(GeluTanh, 6) X(Erf, 2.5) X(Pow, 3.5)
// clang-format on
template <class Functor>
constexpr double kUlps = Functor::kUlps;
#define GRAPHRUN_BOUND(Functor, ulps) \
  template <>                         \
  constexpr double kUlps<scalar::Functor> = ulps;
GRAPHRUN_FAST_BOUNDS(GRAPHRUN_BOUND)
#undef GRAPHRUN_BOUND

}  // namespace graphrun::cuda::tile::fast
