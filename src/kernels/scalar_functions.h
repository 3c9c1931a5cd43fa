// scalar_functions.h: the float functions used by scalar ops, over a value type T: float here, 16 lanes in cpu/, float
// on a device. Contract: uses only scalar_type.h, + - * / and comparisons, so results are bitwise equal under host
// compilers, nvcc and NVRTC (with contraction off: -ffp-contract=off, --fmad=false). NaN propagates; zeros keep their
// sign where the mathematical function has one. Leaves to others: the ops (scalar_ops.h); adding an op or function
// there does not rebuild all loops.
#pragma once

#include "kernels/scalar_type.h"

namespace graphrun::scalar {

// ---- building blocks ----------------------------------------------------------------------------------------------

// x / y where neither y nor 1 / y is zero, subnormal or infinite: a value type may provide a cheaper version.
template <class T>
GRAPHRUN_FN T quotient(T x, T y) {
  return x / y;
}
template <class T>
GRAPHRUN_FN T rsqrt(T x) {
  return 1.0f / sqrt(x);
}

template <class T>
GRAPHRUN_FN T abs(T x) {
  return from_bits(bits(x) & 0x7fffffff);
}
// Infinity (0x7f800000), or the canonical NaN of all machines (0x7fc00000).
template <class T>
GRAPHRUN_FN T from_pattern(int pattern) {
  return from_bits(bits(T(0.0f)) + pattern);
}
template <class T>
GRAPHRUN_FN T copysign(T x, T sign) {
  return from_bits((bits(x) & 0x7fffffff) ^ (bits(sign) & (-0x7fffffff - 1)));
}

// c[0] + c[1] x + c[2] x^2 + …
template <class T>
GRAPHRUN_FN T horner(T, T c) {
  return c;
}
template <class T, class... C>
GRAPHRUN_FN T horner(T x, T c, C... rest) {
  return fma(horner(x, T(rest)...), x, c);
}

// A number kept as the unevaluated sum hi + lo, |lo| about an ulp of hi.
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
template <class T>
GRAPHRUN_FN Pair<T> two_product(T x, T y) {
  T p = x * y;
  return {p, fma(x, y, -p)};
}

// Rounds to the nearest integer, ties to even. From 2^23 on every float is an integer.
template <class T>
GRAPHRUN_FN T round(T x) {
  T magic = copysign(T(8388608.0f), x);
  return select(abs(x) < 8388608.0f, copysign((x + magic) - magic, x), x);
}

// Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
constexpr float kRoundMagic = 12582912.0f;
constexpr int kRoundMagicBits = 0x4b400000;

// x * 2^n, rounded once, for integers n in [-250, 250] and |x| in [0.5, 2].
template <class T>
GRAPHRUN_FN T scale(T x, T n) {
  auto k = bits(n + kRoundMagic) - kRoundMagicBits;
  auto half = k >> 1;
  return x * from_bits((half + 127) << 23) * from_bits((k - half + 127) << 23);
}

// x = n log(2) + r, |r| <= log(2) / 2, for |x| <= 200; power = 2^(n + kUp) where that is a normal number.
template <class T>
struct Powers {
  T n, r, power;
};
template <int kUp, class T>
GRAPHRUN_FN Powers<T> powers_of_two(T x) {
  constexpr float kMagic = kRoundMagic + 127.0f + kUp;  // the low bits of the sum are the exponent of 2^(n + kUp)
  T shifted = fma(x, T(0x1.715476p+0f), T(kMagic));
  T n = shifted - kMagic;
  T r = fma(n, T(-0x1.62e4p-1f), x);
  return {n, fma(n, T(-0x1.7f7d1cp-20f), r), from_bits(bits(shifted) << 23)};
}
// exp(r) for |r| <= log(2) / 2: the polynomial's relative error is 3.2e-9.
template <class T>
GRAPHRUN_FN T exp_near(T r) {
  return horner(r, T(1.0f), 1.0f, 0x1.fffffcp-2f, 0x1.55548cp-3f, 0x1.555858p-5f, 0x1.123ddap-7f, 0x1.6ac6acp-10f);
}
template <class T>
GRAPHRUN_FN T exp_within(T x) {  // [-200, 170]
  Powers<T> e = powers_of_two<0>(x);
  return scale(exp_near(e.r), e.n);
}
template <class T>
GRAPHRUN_FN T exp(T x) {
  return exp_within(max(T(-104.0f), min(T(89.0f), x)));
}

template <class T>
GRAPHRUN_FN T expm1(T x) {
  Powers<T> e = powers_of_two<-1>(max(T(-30.0f), min(T(89.0f), x)));
  // exp(r) - 1 = r + r^2 q(r), relative error 1.4e-8; half of 2^n, for n = 128
  T p = fma(e.r * e.r, horner(e.r, T(0x1.fffffep-2f), 0x1.5554aap-3f, 0x1.555796p-5f, 0x1.122beap-7f, 0x1.6acf3ep-10f),
            e.r);
  T y = fma(e.power, p, e.power - 0.5f) * 2.0f;
  return select(abs(x) < 0x1p-25f, x, y);
}

// x = 2^k (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1], for normal x > 0. exponent = 2^23 k, the scale of x's bits.
template <class T>
struct LogParts {
  T exponent, f;
};
constexpr float kLog2High = 0x1.62e4p-24f;  // log(2) 2^-23 in two words: the first times an exponent is exact
constexpr float kLog2Low = 0x1.7f7d1cp-43f;
template <class T>
GRAPHRUN_FN auto exponent_bits(T x) {
  return ((bits(x) & 0x7fffffff) - 0x3f3504f3) & -0x00800000;  // less the bits of sqrt(1/2)
}
template <class T>
GRAPHRUN_FN LogParts<T> log_parts(T x) {
  auto k = exponent_bits(x);
  return {number(k), from_bits((bits(x) & 0x7fffffff) - k) - 1.0f};
}
// Also handles subnormal x > 0.
template <class T>
GRAPHRUN_FN LogParts<T> log_parts_of_any(T x) {
  auto tiny = x < 0x1p-126f;
  LogParts<T> v = log_parts(select(tiny, x * 0x1p23f, x));
  return {v.exponent - select(tiny, T(23 * 0x1p23f), T(0.0f)), v.f};
}
// log(1 + f) = f + f^2 q(f), relative error 4.5e-9.
template <class T>
GRAPHRUN_FN T log_join(LogParts<T> v) {
  T f = v.f;
  T q = horner(f, T(-0x1.fffffap-2f), 0x1.555552p-2f, -0x1.0003bap-2f, 0x1.99a298p-3f, -0x1.5435cp-3f, 0x1.2291bcp-3f,
               -0x1.0ef7ep-3f, 0x1.0771dep-3f, -0x1.371f0ep-4f);
  T low = fma(f * f, q, v.exponent * kLog2Low);
  return fma(v.exponent, T(kLog2High), f + low);
}
template <class T>
GRAPHRUN_FN T log(T x) {
  const T infinity = from_pattern<T>(0x7f800000);
  T y = log_join(log_parts(x));
  auto special = !((x >= 0x1p-126f) & (x < infinity));
  if (any(special)) {
    y = select(special, log_join(log_parts_of_any(x)), y);
    y = select(x < infinity, y, x);  // inf and NaN
    y = select(x < 0.0f, from_pattern<T>(0x7fc00000), y);
    y = select(x == 0.0f, -infinity, y);
  }
  return y;
}
template <class T>
GRAPHRUN_FN T log1p(T x) {
  const T infinity = from_pattern<T>(0x7f800000);
  auto k = exponent_bits(1.0f + x);
  T power = from_bits(0x3f800000 - k);  // 2^-k, so that f is rounded once
  T y = copysign(log_join<T>({number(k), fma(x, power, power - 1.0f)}), x);
  auto special = !((x > -1.0f) & (x < 0x1p100f));
  if (any(special)) {
    y = select(x < 0x1p100f, y, log_join(log_parts(x)));
    y = select(x < infinity, y, x);
    y = select(x < -1.0f, from_pattern<T>(0x7fc00000), y);
    y = select(x == -1.0f, -infinity, y);
  }
  return y;
}

// x = quadrant * pi/2 + r. Up to 1e5 with three constants; beyond, the fraction of x * 2/pi comes from exact products
// with nine words of 2/pi, each reduced modulo 4 separately (the words are scaled by 2^64, x by 2^-64).
template <class T>
GRAPHRUN_FN Pair<T> add_turns(Pair<T> sum, T& low, T turns) {
  turns = turns - 4.0f * round(turns * 0.25f);
  Pair<T> s = two_sum(sum.hi, turns);
  Pair<T> t = two_sum(sum.lo, s.lo);
  low = low + t.lo;
  return {s.hi, t.hi};
}
template <class T>
GRAPHRUN_FN Pair<T> add_word(Pair<T> sum, T& low, T x, float word) {
  Pair<T> p = two_product(x, T(word));
  sum = add_turns(sum, low, p.hi);
  return add_turns(sum, low, p.lo);
}
template <class T>
GRAPHRUN_FN T reduce(T x, T& quadrant) {
  T n = fma(x, T(0x1.45f306p-1f), T(kRoundMagic)) - kRoundMagic;
  T r = fma(n, T(-0x1.921fb6p+0f), x);
  r = fma(n, T(0x1.777a5cp-25f), r);
  r = fma(n, T(0x1.ee59dap-50f), r);
  quadrant = n;
  auto large = abs(x) > 1e5f;
  if (any(large)) {
    T small_x = x * 0x1p-64f;
    Pair<T> sum = {T(0.0f), T(0.0f)};
    T low = T(0.0f);
    sum = add_word(sum, low, small_x, 0x1.45f306p+63f);
    sum = add_word(sum, low, small_x, 0x1.b93910p+38f);
    sum = add_word(sum, low, small_x, 0x1.529fc2p+12f);
    sum = add_word(sum, low, small_x, 0x1.d5f47ep-14f);
    sum = add_word(sum, low, small_x, -0x1.659120p-39f);
    sum = add_word(sum, low, small_x, 0x1.b6c52cp-65f);
    sum = add_word(sum, low, small_x, -0x1.9b0ef2p-90f);
    sum = add_word(sum, low, small_x, 0x1.041fe6p-116f);
    T whole = round(sum.hi);
    Pair<T> f = two_sum(sum.hi - whole, sum.lo);
    T again = round(f.hi);  // the low part may have carried f past a half
    f = two_sum(f.hi - again, f.lo + low);
    T far = fma(f.hi, T(0x1.921fb6p+0f), fma(f.hi, T(-0x1.777a5cp-25f), f.lo * 0x1.921fb6p+0f));
    r = select(large, far, r);
    quadrant = select(large, whole + again, quadrant);
  }
  return r;
}
// The quadrant modulo 4; after `reduce` |quadrant| < 2^17.
template <class T>
GRAPHRUN_FN auto quadrant_bits(T quadrant) {
  return bits(quadrant + kRoundMagic) & 3;
}
template <class T>
GRAPHRUN_FN T sin_near(T r) {
  T z = r * r;
  return fma(r * z, horner(z, T(-0.166666672f), 0.00833337847f, -0.000198525653f, 2.82641668e-06f), r);
}
template <class T>
GRAPHRUN_FN T cos_near(T r) {
  T z = r * r;
  return fma(z * z, horner(z, T(0.0416666456f), -0.00138872978f, 2.44300882e-05f), fma(z, T(-0.5f), T(1.0f)));
}
template <class T>
GRAPHRUN_FN T sin_of_quadrant(T x, int shift) {
  T quadrant = x;
  T r = reduce(x, quadrant);
  auto q = quadrant_bits(quadrant) + shift;
  T y = select(nonzero(q & 1), cos_near(r), sin_near(r));
  return from_bits(bits(y) ^ ((q & 2) << 30));
}
template <class T>
GRAPHRUN_FN T sin(T x) {
  return select(abs(x) < 0x1p-13f, x, sin_of_quadrant(x, 0));
}
template <class T>
GRAPHRUN_FN T cos(T x) {
  return sin_of_quadrant(x, 1);
}
template <class T>
GRAPHRUN_FN T tan(T x) {
  T quadrant = x;
  T r = reduce(x, quadrant);
  T z = r * r;
  T y = fma(r * z,
            horner(z, T(0.333333522f), 0.133325711f, 0.0540709682f, 0.0212227181f, 0.0109951505f, -0.000118147633f,
                   0.00448120805f),
            r);
  y = select(nonzero(quadrant_bits(quadrant) & 1), -1.0f / y, y);
  return select(abs(x) < 0x1p-13f, x, y);
}

// With e = exp(-2 |x|): ((1 - e) / 2) / ((1 + e) / 2). The dividend keeps full precision for small x. Neither it nor
// the divisor is rounded just above a power of two where the quotient is just below one. Beyond 9.01, 1 by rounding.
template <class T>
GRAPHRUN_FN T tanh(T x) {
  constexpr float kMagic = kRoundMagic + 127.0f;  // leaves the exponent of 2^n in the low bits
  T a = min(T(10.0f), abs(x));
  T shifted = fma(a, T(-0x1.715476p+1f), T(kMagic));
  T n = shifted - kMagic;
  T power = from_bits(bits(shifted) << 23);
  T r = fma(n, T(0x1.62e43p-2f), a);  // |r| <= log(2) / 4: one word of log(2) suffices, since e fades as n grows
  // (1 - exp(-2 r)) / 2 = r + r^2 q(r), minimax for the relative error of the result: 1.0e-8
  T r2 = r * r;
  T q = fma(r2, fma(r2, T(-0x1.6a3cf6p-5f), fma(r, T(0x1.124e2p-3f), T(-0x1.555ac8p-2f))),
            fma(r, T(0x1.555474p-1f), T(-0x1.fffff6p-1f)));
  T p = fma(r2, q, r);
  T dividend = fma(power, p, fma(power, T(-0.5f), T(0.5f)));
  T divisor = fma(-power, p, fma(power, T(0.5f), T(0.5f)));
  return copysign(dividend / divisor, x);
}

// x / (1 + exp(-t)), t = high + low; x must be finite and t is at least -109. Divisor and quotient are scaled by 2^-32,
// so that exp() does not overflow before the quotient underflows.
template <class T>
GRAPHRUN_FN T logistic(T x, T high, T low) {
  Powers<T> e = powers_of_two<-32>(-min(T(40.0f), high));
  T p = exp_near(e.r);
  p = fma(p, -low, p);
  T y = quotient(x, fma(p, e.power, T(0x1p-32f))) * 0x1p-32f;
  return select(high > 40.0f, x, y);
}
template <class T>
GRAPHRUN_FN T silu(T x) {
  T c = max(T(-109.0f), x);
  Powers<T> e = powers_of_two<-32>(-min(T(40.0f), c));
  T y = quotient(c, fma(exp_near(e.r), e.power, T(0x1p-32f))) * 0x1p-32f;
  return select(x > 40.0f, x, y);
}
template <class T>
GRAPHRUN_FN T sigmoid(T x) {
  Powers<T> e = powers_of_two<-64>(-max(T(-104.0f), min(T(40.0f), x)));
  return quotient(T(0x1p-64f), fma(exp_near(e.r), e.power, T(0x1p-64f)));
}
template <class T>
GRAPHRUN_FN T softplus(T x) {
  T t = exp_within(-min(T(104.0f), abs(x)));
  // log(1 + t) = t (1 + t q(t)) in [0, 1], relative error 5.3e-9
  T q = horner(t, T(1.0f), -0x1.ffffd2p-2f, 0x1.554ddp-2f, -0x1.ff23e6p-3f, 0x1.934b54p-3f, -0x1.3a435ep-3f,
               0x1.b4ae08p-4f, -0x1.d6b08cp-5f, 0x1.4917cep-6f, -0x1.af49cep-9f);
  return fma(t, q, max(x, T(0.0f)));
}

// exp(u^2 / 2) times the upper tail probability of the normal distribution beyond u, u in [0, 15].
template <class T>
GRAPHRUN_FN T normal_tail(T u) {
  T scale = quotient(T(1.0f), u + 4.0f);
  T w = (u - 4.0f) * scale;
  return scale * horner(w, T(0.755285144f), -0.607896626f, 0.387136608f, -0.186522946f, 0.0604063235f, -0.00752656721f,
                        -0.00352044287f, 0.0015686265f, 0.000187580037f, -0.000127290506f);
}
template <class T>
GRAPHRUN_FN T erf_near(T x) {  // |x| < 0.95
  T z = x * x;
  return fma(
      x, horner(z, T(0.128379136f), -0.376124114f, 0.112810135f, -0.0267394874f, 0.00495586265f, -0.000581142725f), x);
}
template <class T>
GRAPHRUN_FN T erf(T x) {
  T u = min(T(10.0f), abs(x));
  Pair<T> s = two_product(u, u);
  T tail = normal_tail(u * 1.41421356f) * 2.0f;
  T far = copysign(1.0f - exp(-s.hi) * fma(tail, -s.lo, tail), x);
  return select(u < 0.9f, erf_near(x), far);
}
template <class T>
GRAPHRUN_FN T gelu(T x) {
  T u = min(T(15.0f), abs(x));
  Pair<T> s = two_product(u, u);
  T tail = normal_tail(u);
  tail = fma(tail, s.lo * -0.5f, tail);
  Powers<T> e = powers_of_two<0>(s.hi * -0.5f);
  T p = tail * exp_near(e.r);
  T below = scale(-u * p, e.n);
  T above = x * (1.0f - scale(p, e.n));
  T near = x * fma(erf_near(x * 0.707106781f), T(0.5f), T(0.5f));
  return select(u < 0.7f, near, select(x < 0.0f, below, above));
}
template <class T>
GRAPHRUN_FN T gelu_tanh(T x) {
  // x * sigmoid(t), t = x (c1 + c2 x^2) in two words: exp() of the tail magnifies rounding errors of t.
  T c = max(T(-15.0f), min(T(15.0f), x));
  Pair<T> z = two_product(c, c);
  Pair<T> p = two_product(z.hi, T(0x1.2444f2p-4f));
  Pair<T> h = two_sum(T(0x1.988454p+0f), p.hi);
  T low = h.lo + p.lo;
  low = fma(z.lo, T(0x1.2444f2p-4f), low);
  low = fma(z.hi, T(0x1.49b16ap-29f), low) + -0x1.857936p-25f;
  Pair<T> t = two_product(c, h.hi);
  return logistic(max(T(-15.0f), x), max(T(-109.0f), t.hi), fma(c, low, t.lo));
}

template <class T>
GRAPHRUN_FN T relu(T x) {
  return select(x <= 0.0f, T(0.0f), x);
}
template <class T>
GRAPHRUN_FN T where_positive(T x, T y) {  // else 0
  return select(x > 0.0f, y, T(0.0f));
}

template <class T>
GRAPHRUN_FN T floor(T x) {
  T r = round(x);
  return copysign(r - select(r > x, T(1.0f), T(0.0f)), x);
}
template <class T>
GRAPHRUN_FN T ceil(T x) {
  T r = round(x);
  return copysign(r + select(r < x, T(1.0f), T(0.0f)), x);
}

// As in NumPy: the exact remainder, with the sign of y. Each iteration subtracts a multiple of |y| with 24 bits,
// exactly; |y| is scaled by 2^96 or 2^192 while that is at most the rest, so that no quotient overflows.
template <class T>
GRAPHRUN_FN T mod(T x, T y) {
  T r = abs(x);
  T d = abs(y);
  T middle = d * 0x1p96f;
  T high = middle * 0x1p96f;
  for (auto more = r >= d; any(more); more = r >= d) {
    T t = select(r >= high, high, select(r >= middle, middle, d));
    T q = r / t;
    q = select(q < 8388608.0f, floor(q), q);
    T rest = fma(-q, t, r);
    T fewer = select(q < 8388608.0f, q - 1.0f, from_bits(bits(q) - 1));
    rest = select(rest < 0.0f, fma(-fewer, t, r), rest);
    r = select(more, rest, r);
  }
  r = select(d == d, r, d);
  r = copysign(r, x);
  T y_sided = select((r < 0.0f) & (y > 0.0f), r + y, select((r > 0.0f) & (y < 0.0f), r + y, r));
  return select(r == 0.0f, copysign(r, y), y_sided);
}

template <class T>
GRAPHRUN_FN T pow(T x, T y) {
  const T infinity = from_pattern<T>(0x7f800000);
  T one = T(1.0f);
  T zero = T(0.0f);
  // log |x| in two words: 2 s + s^3 L(s^2), s = f / (2 + f).
  T ax = abs(x);
  LogParts<T> v = log_parts_of_any(ax);
  T d = v.f + 2.0f;
  T d_low = v.f - (d - 2.0f);
  T s = quotient(v.f, d);
  T s_low = quotient(fma(-s, d_low, fma(-s, d, v.f)), d);
  Pair<T> z = two_product(s, s);
  Pair<T> s3 = two_product(z.hi, s);
  Pair<T> cubic = two_product(s3.hi, T(0.666666627f));
  T rest = s3.hi * z.hi * horner(z.hi, T(0.400009692f), 0.284991741f, 0.242680535f);
  T low = fma(fma(z.lo, s, s3.lo), T(0.666666627f), cubic.lo + rest);
  low = fma(s_low, fma(z.hi, T(2.0f), T(2.0f)), fma(v.exponent, T(kLog2Low), low));
  Pair<T> h = two_sum(v.exponent * kLog2High, s * 2.0f);
  Pair<T> g = two_sum(h.hi, cubic.hi);
  h = two_sum(g.hi, g.lo + (h.lo + low));
  h.hi = select(ax == infinity, infinity, select(ax == 0.0f, -infinity, h.hi));
  // exp(y log |x|)
  Pair<T> t = two_product(y, h.hi);
  T t_low = fma(y, h.lo, t.lo);
  Powers<T> e = powers_of_two<0>(max(T(-150.0f), min(T(89.0f), t.hi)));
  T p = exp_near(e.r);
  T r = scale(select(abs(t.hi) < 200.0f, fma(p, t_low, p), p), e.n);
  r = select(abs(t.hi) < infinity, r, select(t.hi > 0.0f, infinity, select(t.hi < 0.0f, zero, t.hi)));
  // signs and the special cases of IEEE 754
  auto whole = round(y) == y;
  auto even = round(y * 0.5f) == y * 0.5f;  // true for every float from 2^24 on
  auto odd = whole & !even;
  r = select(odd, copysign(r, x), r);
  r = select((x < 0.0f) & (ax < infinity) & !whole, from_pattern<T>(0x7fc00000), r);
  r = select(x == x, select(y == y, r, y), x);
  r = select((ax == 1.0f) & (abs(y) == infinity), one, r);
  return select((y == 0.0f) | (x == 1.0f), one, r);
}

}  // namespace graphrun::scalar
