// scalar_functions64.h: the functions of scalar_functions.h in double precision, over a value type T: double here,
// eight lanes in cpu/. Contract: as there, so results are bitwise equal for every instruction set and on every host; at
// most 2 ulp from the exact value. Not here: mod, which has no version in f64.
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
// Polynomials of fdlibm, for |r| <= pi/4, with the rounding of the last addition.
template <class T>
GRAPHRUN_FN Pair<T> sin_near(T r) {
  T z = r * r;
  T q = horner(z, T(-1.66666666666666324348e-01), 8.33333333332248946124e-03, -1.98412698298579493134e-04,
               2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10);
  T s = fma(r * z, q, r);
  return {s, fma(r * z, q, r - s)};
}
template <class T>
GRAPHRUN_FN Pair<T> cos_near(T r) {
  T z = r * r;
  T half = z * 0.5;
  T w = 1.0 - half;
  T q = horner(z, T(4.16666666666666019037e-02), -1.38888888888741095749e-03, 2.48015872894767294178e-05,
               -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11);
  T rest = fma(z * z, q, (1.0 - w) - half);
  T c = w + rest;
  return {c, rest - (c - w)};
}
template <class T>
GRAPHRUN_FN T sin_of_quadrant(T x, Bits shift) {
  T quadrant = x;
  T r = reduce(x, quadrant);
  auto q = bits(quadrant + kMagic) + shift;
  T y = select(nonzero(q & 1), cos_near(r).hi, sin_near(r).hi);
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
// Quotient of sine and cosine with their roundings: that of two rounded values is up to 2.4 ulp from the exact one.
template <class T>
GRAPHRUN_FN T tan(T x) {
  T quadrant = x;
  T r = reduce(x, quadrant);
  Pair<T> s = sin_near(r), c = cos_near(r);
  auto odd = nonzero(bits(quadrant + kMagic) & 1);
  Pair<T> top = {select(odd, -c.hi, s.hi), select(odd, -c.lo, s.lo)};
  Pair<T> bottom = {select(odd, s.hi, c.hi), select(odd, s.lo, c.lo)};
  T y = top.hi / bottom.hi;
  T rest = fma(-y, bottom.lo, fma(-y, bottom.hi, top.hi) + top.lo);
  return select(abs(x) < 0x1p-27, x, y + rest / bottom.hi);
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
// u exp(u^2 / 2) times the upper tail probability of the normal distribution beyond u, u in [0.5, 40], as a polynomial
// in w = (u - 4) / (u + 4) with a relative error of 2^-54.7. The slope corrects for the rounding of w.
template <class T>
GRAPHRUN_FN Pair<T> normal_tail(T u) {
  Pair<T> a = two_sum(u, T(-4.0)), d = two_sum(u, T(4.0));
  T w = a.hi / d.hi;
  T w_low = (fma(-w, d.hi, a.hi) + fma(-w, d.lo, a.lo)) / d.hi;
  T slope = horner(w, T(0.0737), -0.2208, 0.3009, -0.2523, 0.1321, -0.0331, -0.0065, 0.0071);
  T p = horner(w, T(0x1.2dda040d62d0bp-4), -0x1.c41d6bcaf84ecp-4, 0x1.9adc525a903eep-4, -0x1.024df8efd436ap-4,
               0x1.b0ffe01da7b35p-6, -0x1.691976f8c3256p-8, -0x1.e4abd3b6e1be9p-11, 0x1.ce76f608b889cp-11,
               -0x1.99ff0fb007815p-15, -0x1.e8a4befa1abd9p-14, 0x1.16d05e8d2acc5p-16, 0x1.2cd5e61165d05p-16,
               -0x1.5d6bee64bfcbcp-19, -0x1.b7c91f5bbfcc5p-19, 0x1.ae69d52e12f29p-23, 0x1.5d309d1e30b54p-21,
               0x1.b0b0402b8503fp-25, -0x1.0d488a301e730p-23, -0x1.d00fdb55ec4c4p-26, 0x1.6698d4f546b00p-26,
               0x1.54ba63ac6f5c7p-28, -0x1.401759166468fp-29);
  Pair<T> y = two_sum(T(0x1.82b4bb8c94dcep-2), w * p);
  return {y.hi, y.lo + fma(w_low, slope, fma(w, p, -(w * p)))};
}
// y exp(-(high + low))
template <class T>
GRAPHRUN_FN T decayed(Pair<T> y, T high, T low) {
  Exp<T> e = exp_parts(-high);
  T near = fma(e.near, -low, e.near - low);
  return scale(y.hi + fma(y.hi, near, fma(y.lo, near, y.lo)), e.n);
}
template <class T>
GRAPHRUN_FN T erf(T x) {
  T u = min(T(6.5), abs(x)), z = u * u;
  T near = fma(x,
               horner(z, T(0x1.06eba8214db69p-3), -0x1.812746b0379e7p-2, 0x1.ce2f21a042bdep-4, -0x1.b82ce312889bep-6,
                      0x1.565bcd0e650e1p-8, -0x1.c02db3feedba8p-11, 0x1.f9a326c2864b4p-14, -0x1.f4d2562282ff2p-17,
                      0x1.b9e65114fcc87p-20, -0x1.5f6d978de772fp-23, 0x1.fc43a356a068dp-27, -0x1.4e61eb4124ecbp-30,
                      0x1.7f0f204500b63p-34, -0x1.29cd9cfb6be5fp-38),
               x);
  T tail = normal_tail(u * 0x1.6a09e667f3bcdp+0).hi / u * 0x1.6a09e667f3bcdp+0;
  return select(u < 1.0, near, copysign(1.0 - decayed(Pair<T>{tail, T(0.0)}, z, fma(u, u, -z)), x));
}
template <class T>
GRAPHRUN_FN T gelu(T x) {
  T u = min(T(40.0), abs(x)), z = u * u;
  T near = x * fma(x,
                   horner(z, T(0x1.9884533d43651p-2), -0x1.1058377e2cee0p-4, 0x1.46d04297691dap-7,
                          -0x1.37403f6ba1024p-10, 0x1.e42b0d52009d0p-14, -0x1.3ce8fab6e987dp-17, 0x1.658a1b83d335ep-21,
                          -0x1.622050cf42365p-25, 0x1.3805ee1234accp-29, -0x1.d5bfe08960f39p-34),
                   T(0.5));
  T below = -decayed(normal_tail(u), z * 0.5, fma(u, u, -z) * 0.5);
  return select(u < 0.5, near, select(x > 0.0, x + below, below));
}

// As scalar::pow: exp(y log |x|), where log |x| in two words is 2 s + s^3 (2/3 + s^2 L(s^2)), s = f / (2 + f).
template <class T>
GRAPHRUN_FN T pow(T x, T y) {
  const T infinity = pattern<T>(kInfinity);
  T ax = abs(x);
  auto tiny = ax < 0x1p-1022;
  T scaled = select(tiny, ax * 0x1p54, ax);
  auto exponent = log_exponent(scaled);
  T k = exponent_number<T>(exponent) - select(tiny, T(54.0), T(0.0));
  T f = from_bits(bits(scaled) - exponent + kOne) - 1.0;
  T d = f + 2.0, s = f / d;
  T s_low = fma(-s, f - (d - 2.0), fma(-s, d, f)) / d;
  T z = s * s, z_low = fma(s, s, -z);
  T s3 = z * s, s3_low = fma(z, s, -s3);
  T cubic = s3 * 0x1.5555555555555p-1, cubic_low = fma(s3, T(0x1.5555555555555p-1), -cubic);
  T rest = s3 * z *
           horner(z, T(0x1.999999999999ap-2), 0x1.2492492492491p-2, 0x1.c71c71c71cfe8p-3, 0x1.745d174512513p-3,
                  0x1.3b13b1bd04359p-3, 0x1.1110df83666bdp-3, 0x1.e1f807f243f32p-4, 0x1.ac4967061b283p-4,
                  0x1.b8de22f2d179cp-4);
  T low = fma(fma(z_low, s, s3_low), T(0x1.5555555555555p-1), fma(s3, T(0x1.5555555555555p-55), cubic_low) + rest);
  low = fma(s_low, fma(z, T(2.0), T(2.0)), fma(k, T(-0x1.718432a1b0e26p-35), low));
  Pair<T> h = two_sum(k * 0x1.62e42ff000000p-1, s * 2.0);
  Pair<T> g = two_sum(h.hi, cubic);
  h = two_sum(g.hi, g.lo + (h.lo + low));
  h.hi = select(ax == infinity, infinity, select(ax == 0.0, -infinity, h.hi));
  T t = y * h.hi, t_low = fma(y, h.lo, fma(y, h.hi, -t));
  Exp<T> e = exp_parts(max(T(-746.0), min(T(710.0), t)));
  T r = scale(select(abs(t) < 800.0, fma(e.near, t_low, e.near + t_low), e.near) + 1.0, e.n);
  r = select(abs(t) < infinity, r, select(t > 0.0, infinity, select(t < 0.0, T(0.0), t)));
  auto whole = round(y) == y;
  auto odd = whole & !(round(y * 0.5) == y * 0.5);
  r = select(odd, copysign(r, x), r);
  r = select((x < 0.0) & (ax < infinity) & !whole, pattern<T>(kNan), r);
  r = select(x == x, select(y == y, r, y), x);
  r = select((ax == 1.0) & (abs(y) == infinity), T(1.0), r);
  return select((y == 0.0) | (x == 1.0), T(1.0), r);
}

}  // namespace graphrun::scalar64
