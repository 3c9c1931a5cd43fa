// scalar_functions64.h: the functions of scalar_functions.h in double precision, over a value type T: double here,
// eight lanes in cpu/. Contract: as there, so results are bitwise equal for every instruction set and on every host; at
// most 2 ulp from the exact value (tan: 4). Not here: erf, gelu, selu, mod and pow, which have no version in f64.
#pragma once

#include "kernels/scalar_type.h"

namespace graphrun::scalar64 {

using Bits = unsigned long long;

// The interface of scalar_type.h for one double. Shifts of bits() are logical.
GRAPHRUN_FN double select(bool m, double x, double y) {
  return m ? x : y;
}
GRAPHRUN_FN double min(double x, double y) {
  return x < y ? x : y;
}
GRAPHRUN_FN double max(double x, double y) {
  return x > y ? x : y;
}
GRAPHRUN_FN bool any(bool m) {
  return m;
}
GRAPHRUN_FN bool nonzero(Bits i) {
  return i != 0;
}
GRAPHRUN_FN Bits bits(double x) {
  return __builtin_bit_cast(Bits, x);
}
GRAPHRUN_FN double from_bits(Bits i) {
  return __builtin_bit_cast(double, i);
}
GRAPHRUN_FN double fma(double x, double y, double z) {
  return __builtin_fma(x, y, z);
}
GRAPHRUN_FN double sqrt(double x) {
  return __builtin_sqrt(x);
}

constexpr Bits kSign = Bits{1} << 63, kInfinity = Bits{0x7ff} << 52, kNan = Bits{0xfff} << 51, kOne = Bits{1023} << 52;
constexpr double kMagic = 0x1.8p52;  // adding it leaves the nearest integer in the low bits

template <class T>
GRAPHRUN_FN T pattern(Bits b) {
  return from_bits(bits(T(0.0)) + b);
}
template <class T>
GRAPHRUN_FN T abs(T x) {
  return from_bits(bits(x) & ~kSign);
}
template <class T>
GRAPHRUN_FN T copysign(T x, T sign) {
  return from_bits((bits(x) & ~kSign) ^ (bits(sign) & kSign));
}
template <class T>
GRAPHRUN_FN T horner(T, T c) {
  return c;
}
template <class T, class... C>
GRAPHRUN_FN T horner(T x, T c, C... rest) {
  return fma(horner(x, T(rest)...), x, c);
}
template <class T>
GRAPHRUN_FN T round(T x) {
  T magic = copysign(T(0x1p52), x);
  return select(abs(x) < 0x1p52, copysign((x + magic) - magic, x), x);
}
template <class T>
GRAPHRUN_FN T floor(T x) {
  T r = round(x);
  return copysign(r - select(r > x, T(1.0), T(0.0)), x);
}
template <class T>
GRAPHRUN_FN T ceil(T x) {
  T r = round(x);
  return copysign(r + select(r < x, T(1.0), T(0.0)), x);
}

// 2^n for integers n of normal numbers.
template <class T>
GRAPHRUN_FN T power_of_two(T n) {
  return from_bits(bits(n + (kMagic + 1023)) << 52);
}
// x * 2^n, rounded once, for integers n in [-1100, 1100] and |x| in [0.5, 2].
template <class T>
GRAPHRUN_FN T scale(T x, T n) {
  T half = fma(n, T(0.5), T(kMagic)) - kMagic;
  return x * power_of_two(half) * power_of_two(n - half);
}

// x = n log(2) + r, |r| <= log(2) / 2, and near = exp(r) - 1, with a relative error of 2^-58.5 before rounding.
template <class T>
struct Exp {
  T n, near;
};
template <class T>
GRAPHRUN_FN Exp<T> exp_parts(T x) {
  T n = fma(x, T(0x1.71547652b82fep+0), T(kMagic)) - kMagic;
  T r = fma(n, T(-0x1.62e42ff000000p-1), x);
  r = fma(n, T(0x1.718432a1b0e26p-35), r);
  T q = horner(r, T(0.5), 0x1.5555555555556p-3, 0x1.5555555555555p-5, 0x1.11111111109b5p-7, 0x1.6c16c16c16719p-10,
               0x1.a01a01a7c272ap-13, 0x1.a01a01a4e8557p-16, 0x1.71de0db4dda34p-19, 0x1.27e4e09a78889p-22,
               0x1.af389a48d0527p-26, 0x1.1f69aeb7f6caep-29);
  return {n, fma(r * r, q, r)};
}
template <class T>
GRAPHRUN_FN T exp(T x) {
  Exp<T> e = exp_parts(max(T(-746.0), min(T(710.0), x)));
  return scale(e.near + 1.0, e.n);
}
template <class T>
GRAPHRUN_FN T expm1(T x) {
  Exp<T> e = exp_parts(max(T(-60.0), min(T(710.0), x)));
  T half = power_of_two(e.n - 1.0);
  T y = fma(half, e.near, half - 0.5) * 2.0;
  return select(abs(x) < 0x1p-54, x, y);
}

// log(x) for x = 2^k (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1]; the polynomial is that of fdlibm.
template <class T>
GRAPHRUN_FN T log_join(T k, T f) {
  T s = f / (f + 2.0);
  T z = s * s;
  T rest = z * horner(z, T(6.666666666666735130e-01), 3.999999999940941908e-01, 2.857142874366239149e-01,
                      2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                      1.479819860511658591e-01);
  T half = f * f * 0.5;
  T low = fma(s, half + rest, k * -0x1.718432a1b0e26p-35);
  return fma(k, T(0x1.62e42ff000000p-1), f - (half - low));
}
constexpr Bits kHalfRoot = 0x3fe6a09e667f3bcd;  // sqrt(1/2)
// k + 1023 in the position of an exponent, for normal x > 0.
template <class T>
GRAPHRUN_FN auto log_exponent(T x) {
  return (bits(x) - kHalfRoot + kOne) & kInfinity;
}
template <class T, class B>
GRAPHRUN_FN T exponent_number(B exponent) {
  return from_bits((exponent >> 52) + bits(T(0x1p52))) - (0x1p52 + 1023);
}
template <class T>
GRAPHRUN_FN T log(T x) {
  const T infinity = pattern<T>(kInfinity);
  auto tiny = x < 0x1p-1022;
  T scaled = select(tiny, x * 0x1p54, x);
  auto e = log_exponent(scaled);
  T k = exponent_number<T>(e) - select(tiny, T(54.0), T(0.0));
  T y = log_join(k, from_bits(bits(scaled) - e + kOne) - 1.0);
  y = select(x < infinity, y, x);  // inf and NaN
  y = select(x < 0.0, pattern<T>(kNan), y);
  return select(x == 0.0, -infinity, y);
}
template <class T>
GRAPHRUN_FN T log1p(T x) {
  const T infinity = pattern<T>(kInfinity);
  auto e = log_exponent(x + 1.0);
  T power = from_bits(bits(T(0.0)) + 2 * kOne - e);  // 2^-k, so that f is rounded once
  T y = copysign(log_join(exponent_number<T>(e), fma(x, power, power - 1.0)), x);
  y = select(x < 0x1p100, y, log(x));
  y = select(x < -1.0, pattern<T>(kNan), y);
  y = select(x == x, y, x);
  return select(x == -1.0, -infinity, y);
}

template <class T>
struct Pair {
  T hi, lo;
};
template <class T>
GRAPHRUN_FN Pair<T> two_sum(T x, T y) {
  T s = x + y;
  T t = s - x;
  return {s, (x - (s - t)) + (y - t)};
}
// x = quadrant * pi/2 + r. Up to 1e5 with three constants; beyond, the fraction of x * 2/pi comes from exact products
// with words of 2/pi, each reduced modulo 4 separately (the words are scaled by 2^512, x by 2^-512).
constexpr double kTwoOverPi[] = {
    0x1.45f306dc9c880p+511,  0x1.529fc2757d200p+460,  -0x1.596447e493ae0p+411, 0x1.664f10e410800p+362,
    -0x1.ae9c5421443a0p+312, -0x1.3c91b7238b7c0p+263, 0x1.374b801924bc0p+214,  -0x1.5f62e6de301e0p+164,
    -0x1.0a71a76b2c600p+113, -0x1.177dca0ad1440p+64,  -0x1.76f62cc71fb20p+15,  -0x1.2e8206fb19b80p-34,
    -0x1.4e33e566305c0p-83,  0x1.c845f8bbdf920p-132,  0x1.0763ff12fffc0p-181,  -0x1.fa67f010d0ee0p-232,
    -0x1.d297d64b824c0p-282, 0x1.b3f6793e584e0p-331,  -0x1.161738132c340p-381, -0x1.5d28ad8453820p-436,
    0x1.7cbe2f67a0e80p-485,  -0x1.821d6b5b45660p-534, 0x1.fdafd88fc6ae0p-583,  0x1.0856033046fc0p-632};
template <class T>
GRAPHRUN_FN Pair<T> add_turns(Pair<T> sum, T& low, T turns) {
  turns = turns - round(turns * 0.25) * 4.0;
  Pair<T> s = two_sum(sum.hi, turns);
  Pair<T> t = two_sum(sum.lo, s.lo);
  low = low + t.lo;
  return {s.hi, t.hi};
}
template <class T>
GRAPHRUN_FN T reduce(T x, T& quadrant) {
  T n = fma(x, T(0x1.45f306dc9c883p-1), T(kMagic)) - kMagic;
  T r = fma(n, T(-0x1.921fb54442d18p+0), x);
  r = fma(n, T(-0x1.1a62633145c07p-54), r);
  r = fma(n, T(0x1.f1976b7ed8fbcp-110), r);
  quadrant = n;
  auto large = abs(x) > 1e5;
  if (any(large)) {
    T small_x = x * 0x1p-512;
    Pair<T> sum = {T(0.0), T(0.0)};
    T low = T(0.0);
    for (double word : kTwoOverPi) {
      T product = small_x * word;
      T rest = fma(small_x, T(word), -product);
      sum = add_turns(sum, low, product);
      sum = add_turns(sum, low, rest);
    }
    T whole = round(sum.hi);
    Pair<T> f = two_sum(sum.hi - whole, sum.lo);
    T again = round(f.hi);  // the low part may have carried f past a half
    f = two_sum(f.hi - again, f.lo + low);
    T far = fma(f.hi, T(0x1.921fb54442d18p+0), fma(f.hi, T(0x1.1a62633145c07p-54), f.lo * 0x1.921fb54442d18p+0));
    r = select(large, far, r);
    quadrant = select(large, whole + again, quadrant);
  }
  return r;
}
// Polynomials of fdlibm, for |r| <= pi/4.
template <class T>
GRAPHRUN_FN T sin_near(T r) {
  T z = r * r;
  T q = horner(z, T(-1.66666666666666324348e-01), 8.33333333332248946124e-03, -1.98412698298579493134e-04,
               2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10);
  return fma(r * z, q, r);
}
template <class T>
GRAPHRUN_FN T cos_near(T r) {
  T z = r * r;
  T half = z * 0.5;
  T w = 1.0 - half;
  T q = horner(z, T(4.16666666666666019037e-02), -1.38888888888741095749e-03, 2.48015872894767294178e-05,
               -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11);
  return w + fma(z * z, q, (1.0 - w) - half);
}
template <class T>
GRAPHRUN_FN T sin_of_quadrant(T x, Bits shift) {
  T quadrant = x;
  T r = reduce(x, quadrant);
  auto q = bits(quadrant + kMagic) + shift;
  T y = select(nonzero(q & 1), cos_near(r), sin_near(r));
  return from_bits(bits(y) ^ ((q & 2) << 62));
}
template <class T>
GRAPHRUN_FN T sin(T x) {
  return select(abs(x) < 0x1p-27, x, sin_of_quadrant(x, 0));
}
template <class T>
GRAPHRUN_FN T cos(T x) {
  return sin_of_quadrant(x, 1);
}
template <class T>
GRAPHRUN_FN T tan(T x) {
  T quadrant = x;
  T r = reduce(x, quadrant);
  T s = sin_near(r), c = cos_near(r);
  auto odd = nonzero(bits(quadrant + kMagic) & 1);
  return select(abs(x) < 0x1p-27, x, select(odd, -c, s) / select(odd, s, c));
}

// As scalar::tanh.
template <class T>
GRAPHRUN_FN T tanh(T x) {
  T a = min(T(20.0), abs(x));
  T n = fma(a, T(-0x1.71547652b82fep+1), T(kMagic)) - kMagic;
  T power = power_of_two(n);
  T r = fma(n, T(0x1.62e42ff000000p-2), a);
  r = fma(n, T(-0x1.718432a1b0e26p-36), r);
  T q = horner(r, T(-1.0), 0x1.5555555555556p-1, -0x1.5555555555555p-2, 0x1.11111111109b5p-3, -0x1.6c16c16c168acp-5,
               0x1.a01a01a7c25d0p-7, -0x1.a01a01a40bc34p-9, 0x1.71de0db531a9ap-11, -0x1.27e4e35621c51p-13,
               0x1.af389980ebeb9p-16, -0x1.1f63fe484aff2p-18);
  T p = fma(r * r, q, r);
  T dividend = fma(power, p, fma(power, T(-0.5), T(0.5)));
  T divisor = fma(-power, p, fma(power, T(0.5), T(0.5)));
  return copysign(dividend / divisor, x);
}

// x / (1 + exp(-t)), t = high + low. Divisor and quotient are scaled by 2^-96, so that exp() does not overflow before
// the quotient underflows.
template <class T>
GRAPHRUN_FN T logistic(T x, T high, T low) {
  Exp<T> e = exp_parts(-max(T(-760.0), min(T(80.0), high)));
  T power = power_of_two(e.n - 96.0);
  T near = fma(e.near, -low, e.near - low);
  T y = x / (fma(power, near, power) + 0x1p-96) * 0x1p-96;
  return select(high > 80.0, x, y);
}
template <class T>
GRAPHRUN_FN T sigmoid(T x) {
  return logistic(T(1.0), x, T(0.0));
}
template <class T>
GRAPHRUN_FN T silu(T x) {
  return logistic(max(T(-760.0), x), x, T(0.0));
}
template <class T>
GRAPHRUN_FN T softplus(T x) {
  return log1p(exp(-abs(x))) + max(x, T(0.0));
}
template <class T>
GRAPHRUN_FN T gelu_tanh(T x) {  // x * sigmoid(t), t = x (c1 + c2 x^2) in two words, as scalar::gelu_tanh
  T c = max(T(-40.0), min(T(40.0), x));
  T z = c * c, z_low = fma(c, c, -z);
  T p = z * 0x1.2444f2a4d8b4bp-4, p_low = fma(z, T(0x1.2444f2a4d8b4bp-4), -p);
  Pair<T> h = two_sum(T(0x1.9884533d43651p+0), p);
  T low = fma(z, T(0x1.8c95337d724e0p-62), fma(z_low, T(0x1.2444f2a4d8b4bp-4), h.lo + p_low));
  T t = c * h.hi;
  return logistic(max(T(-40.0), x), t, fma(c, h.hi, -t) + c * low);
}

}  // namespace graphrun::scalar64
