// scalar_ops.h: every float scalar op once, over a value type T: float here, 16 lanes in cpu/, float of a device.
// Contract: only + - * /, sqrt, fma, compare, select and bit casts, and nothing is included, so the bits are the same
// under host compilers, nvcc and NVRTC (with contraction off: -ffp-contract=off, --fmad=false). NaN propagates; zeros
// keep their sign where the mathematics has one. "ulp" beside a functor is the largest error that the tests allow.
// Leaves to others: loops and broadcasting (cpu/, cuda/); f64 and the meaning of an op, which is the last column of the
// tables below: plain std:: functions in double, all that `ref` uses of this file.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define GRAPHRUN_FN __device__ __forceinline__
#elif !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GRAPHRUN_FN inline  // all inlined, these builds would compile for minutes
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GRAPHRUN_FN inline
#endif
#endif
#if !defined(GRAPHRUN_FN)
#define GRAPHRUN_FN inline __attribute__((always_inline))
#endif

// X(name of the op, functor, reference in double of x with attributes a and b)
#define GRAPHRUN_UNARY_OPS(X)                                                                                  \
  X(neg, Neg, -x)                                                                                              \
  X(abs, Abs, std::fabs(x))                                                                                    \
  X(sign, Sign, x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? 0.0 : x)                                                 \
  X(square, Square, x* x)                                                                                      \
  X(sqrt, Sqrt, std::sqrt(x))                                                                                  \
  X(rsqrt, Rsqrt, 1 / std::sqrt(x))                                                                            \
  X(reciprocal, Reciprocal, 1 / x)                                                                             \
  X(exp, Exp, std::exp(x))                                                                                     \
  X(expm1, Expm1, std::expm1(x))                                                                               \
  X(log, Log, std::log(x))                                                                                     \
  X(log1p, Log1p, std::log1p(x))                                                                               \
  X(sin, Sin, std::sin(x))                                                                                     \
  X(cos, Cos, std::cos(x))                                                                                     \
  X(tan, Tan, std::tan(x))                                                                                     \
  X(tanh, Tanh, std::tanh(x))                                                                                  \
  X(sigmoid, Sigmoid, 1 / (1 + std::exp(-x)))                                                                  \
  X(softplus, Softplus, std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))))                                 \
  X(relu, Relu, x <= 0 ? 0.0 : x)                                                                              \
  X(leaky_relu, LeakyRelu, x > 0 ? x : a * x)                                                                  \
  X(elu, Elu, x > 0 ? x : a * std::expm1(x))                                                                   \
  X(selu, Selu, 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)))                         \
  X(gelu, Gelu, std::max(x, -1e3) * 0.5 * std::erfc(-x / 1.4142135623730951))                                  \
  X(gelu_tanh, GeluTanh, std::max(x, -1e3) / (1 + std::exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))) \
  X(silu, Silu, std::max(x, -1e3) / (1 + std::exp(-x)))                                                        \
  X(erf, Erf, std::erf(x))                                                                                     \
  X(floor, Floor, std::floor(x))                                                                               \
  X(ceil, Ceil, std::ceil(x))                                                                                  \
  X(round, Round, std::nearbyint(x))                                                                           \
  X(clip, Clip, x<a ? a : x> b ? b : x)

// X(name, functor, reference in double of x and y). The last ones are gradients in one pass: y is the gradient of an
// activation, x its value (of square and softplus: its operand).
#define GRAPHRUN_BINARY_OPS(X)                                                                             \
  X(add, Add, x + y)                                                                                       \
  X(sub, Sub, x - y)                                                                                       \
  X(mul, Mul, x* y)                                                                                        \
  X(div, Div, x / y)                                                                                       \
  X(mod, Mod,                                                                                              \
    std::fmod(x, y) == 0 ? std::copysign(0.0, y)                                                           \
                         : std::fmod(x, y) + ((std::fmod(x, y) < 0) != (y < 0) && !std::isnan(x) ? y : 0)) \
  X(pow, Pow, std::pow(x, y))                                                                              \
  X(minimum, Minimum, x <= y || std::isnan(x) ? x : y)                                                     \
  X(maximum, Maximum, x >= y || std::isnan(x) ? x : y)                                                     \
  X(square_gradient, SquareGradient, (x + x) * y)                                                          \
  X(relu_gradient, ReluGradient, x > 0 ? y : 0.0)                                                          \
  X(tanh_gradient, TanhGradient, (1 - x * x) * y)                                                          \
  X(sigmoid_gradient, SigmoidGradient, (1 - x) * x * y)                                                    \
  X(softplus_gradient, SoftplusGradient, 1 / (1 + std::exp(-x)) * y)

// Two numbers in, a boolean out.
#define GRAPHRUN_COMPARE_OPS(X)    \
  X(equal, Equal, x == y)          \
  X(not_equal, NotEqual, x != y)   \
  X(less, Less, x < y)             \
  X(less_equal, LessEqual, x <= y) \
  X(greater, Greater, x > y)       \
  X(greater_equal, GreaterEqual, x >= y)

// Booleans in and out. logical_not ignores y. `where(boolean, x, y)` is the only other op on booleans: select().
#define GRAPHRUN_LOGICAL_OPS(X)                \
  X(logical_and, LogicalAnd, x != 0 && y != 0) \
  X(logical_or, LogicalOr, x != 0 || y != 0)   \
  X(logical_not, LogicalNot, x == 0)

namespace graphrun::scalar {

// The value type's interface; a vector type defines the same names in its own namespace. The type of bits() has
// + - & ^ << >>, and a mask has & | !.
GRAPHRUN_FN float select(bool m, float x, float y) {
  return m ? x : y;
}
GRAPHRUN_FN float min(float x, float y) {
  return x < y ? x : y;
}  // y if one is NaN
GRAPHRUN_FN float max(float x, float y) {
  return x > y ? x : y;
}  // y if one is NaN
GRAPHRUN_FN bool any(bool m) {
  return m;
}  // some lane
GRAPHRUN_FN bool nonzero(int i) {
  return i != 0;
}  // a mask of lanes
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
GRAPHRUN_FN int bits(float x) {
  return __float_as_int(x);
}
GRAPHRUN_FN float from_bits(int i) {
  return __int_as_float(i);
}
GRAPHRUN_FN float fma(float x, float y, float z) {
  return __fmaf_rn(x, y, z);
}
GRAPHRUN_FN float sqrt(float x) {
  return __fsqrt_rn(x);
}
#else
GRAPHRUN_FN int bits(float x) {
  return __builtin_bit_cast(int, x);
}
GRAPHRUN_FN float from_bits(int i) {
  return __builtin_bit_cast(float, i);
}
GRAPHRUN_FN float fma(float x, float y, float z) {
  return __builtin_fmaf(x, y, z);
}
GRAPHRUN_FN float sqrt(float x) {
  return __builtin_sqrtf(x);
}
#endif

// ---- pieces -------------------------------------------------------------------------------------------------------

template <class T>
GRAPHRUN_FN T abs(T x) {
  return from_bits(bits(x) & 0x7fffffff);
}
// Infinity (0x7f800000) and the NaN that all machines agree on (0x7fc00000).
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

// To the nearest integer, halves to even. From 2^23 on every float is an integer.
template <class T>
GRAPHRUN_FN T round(T x) {
  T magic = copysign(T(8388608.0f), x);
  return select(abs(x) < 8388608.0f, copysign((x + magic) - magic, x), x);
}

// 2^k for k in [-126, 127].
template <class I>
GRAPHRUN_FN auto power_of_two(I k) {
  return from_bits((k + 127) << 23);
}

// Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
constexpr float kRoundMagic = 12582912.0f;
constexpr int kRoundMagicBits = 0x4b400000;

// exp(x) = p * s1 * s2 with p in [0.7, 1.5], so that a factor can be applied before the one rounding of a subnormal.
template <class T>
struct ExpParts {
  T p, s1, s2;
};
template <class T>
GRAPHRUN_FN ExpParts<T> exp_parts(T x) {
  T c = select(x < 89.0f, x, T(89.0f));
  c = select(c > -150.0f, c, T(-150.0f));
  T shifted = fma(c, T(0x1.715476p+0f), T(kRoundMagic));
  T n = shifted - kRoundMagic;
  T r = fma(n, T(-0x1.62e4p-1f), c);
  r = fma(n, T(-0x1.7f7d1cp-20f), r);
  T q = horner(r, T(0.5f), 0.166666657f, 0.0416664928f, 0.00833354332f, 0.00139323808f, 0.000197644142f);
  T p = 1.0f + fma(r * r, q, r);
  auto k = bits(shifted) - kRoundMagicBits;
  auto half = k >> 1;
  return {select(x == x, p, x), power_of_two(half), power_of_two(k - half)};
}
template <class T>
GRAPHRUN_FN T exp(T x) {
  ExpParts<T> e = exp_parts(x);
  return e.p * e.s1 * e.s2;
}

template <class T>
GRAPHRUN_FN T expm1(T x) {
  T c = select(x < 89.0f, x, T(89.0f));
  c = select(c > -30.0f, c, T(-30.0f));
  T shifted = fma(c, T(0x1.715476p+0f), T(kRoundMagic));
  T n = shifted - kRoundMagic;
  T r = fma(n, T(-0x1.62e4p-1f), c);
  r = fma(n, T(-0x1.7f7d1cp-20f), r);
  T q = horner(r, T(0.5f), 0.166666657f, 0.0416664928f, 0.00833354332f, 0.00139323808f, 0.000197644142f);
  T p = fma(r * r, q, r);
  T half = power_of_two(bits(shifted) - kRoundMagicBits - 1);  // half of 2^n, for n = 128
  T y = fma(half, p, half - 0.5f) * 2.0f;
  return select(abs(c) < 0x1p-25f, x, select(x == x, y, x));
}

// x = 2^exponent * (1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1], for x > 0 (subnormals too).
template <class T>
struct LogParts {
  T exponent, f;
};
template <class T>
GRAPHRUN_FN LogParts<T> log_parts(T x) {
  auto tiny = x < 0x1p-126f;
  T y = select(tiny, x * 8388608.0f, x);
  auto i = (bits(y) & 0x7fffffff) - 0x3f3504f3;  // bits of sqrt(1/2)
  auto k = i >> 23;
  T exponent = from_bits(k + kRoundMagicBits) - kRoundMagic;
  T m = from_bits((i & 0x007fffff) + 0x3f3504f3);
  return {exponent - select(tiny, T(23.0f), T(0.0f)), m - 1.0f};
}
// exponent * ln 2 + log(1 + f) + tail, where |tail| is small beside the rest.
template <class T>
GRAPHRUN_FN T log_join(LogParts<T> v, T tail) {
  T f = v.f;
  T p = horner(f, T(0.333333105f), -0.24999994f, 0.200022012f, -0.16668652f, 0.142187297f, -0.123961642f, 0.118852347f,
               -0.117219046f, 0.068030633f);
  T f2 = f * f;
  T low = fma(f2 * f, p, fma(v.exponent, T(0x1.7f7d1cp-20f), tail));
  low = fma(f2, T(-0.5f), low);
  return fma(v.exponent, T(0x1.62e4p-1f), f + low);
}
template <class T>
GRAPHRUN_FN T log(T x) {
  T y = log_join(log_parts(x), T(0.0f));
  const T infinity = from_pattern<T>(0x7f800000);
  y = select(x < infinity, y, x);  // inf and NaN
  y = select(x < 0.0f, from_pattern<T>(0x7fc00000), y);
  return select(x == 0.0f, -infinity, y);
}
template <class T>
GRAPHRUN_FN T log1p(T x) {
  T u = 1.0f + x;
  T lost = select(x > 1.0f, 1.0f - (u - x), x - (u - 1.0f));  // 1 + x = u + lost
  T y = log_join(log_parts(u), lost / u);
  const T infinity = from_pattern<T>(0x7f800000);
  y = select(x < infinity, y, x);
  y = select(x < -1.0f, from_pattern<T>(0x7fc00000), y);
  y = select(x == -1.0f, -infinity, y);
  return select(abs(x) < 0x1p-25f, x, y);
}

// x = quadrant * pi/2 + r. Up to 1e5 by three constants; beyond, the fraction of x * 2/pi is taken from exact products
// with nine words of 2/pi, each reduced modulo 4 by itself (the words and x are scaled by 2^64 and 2^-64).
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

// With e = exp(-2 |x|): ((1 - e) / 2) / ((1 + e) / 2). The dividend keeps every digit of a small x, and neither it nor
// the divisor is rounded just above a power of two where the quotient lies just below one. Beyond 9.01, 1 by rounding.
template <class T>
GRAPHRUN_FN T tanh(T x) {
  constexpr float kMagic = kRoundMagic + 127.0f;  // leaves the exponent of 2^n in the low bits
  T a = min(T(10.0f), abs(x));
  T shifted = fma(a, T(-0x1.715476p+1f), T(kMagic));
  T n = shifted - kMagic;
  T power = from_bits(bits(shifted) << 23);
  T r = fma(n, T(0x1.62e43p-2f), a);  // |r| <= log(2) / 4: one word of log(2) is enough, e fades as n grows
  // (1 - exp(-2 r)) / 2 = r + r^2 q(r), minimax for the relative error of the result: 1.0e-8
  T r2 = r * r;
  T q = fma(r2, fma(r2, T(-0x1.6a3cf6p-5f), fma(r, T(0x1.124e2p-3f), T(-0x1.555ac8p-2f))),
            fma(r, T(0x1.555474p-1f), T(-0x1.fffff6p-1f)));
  T p = fma(r2, q, r);
  T dividend = fma(power, p, fma(power, T(-0.5f), T(0.5f)));
  T divisor = fma(-power, p, fma(power, T(0.5f), T(0.5f)));
  return copysign(dividend / divisor, x);
}

// x * exp(y) / (1 + exp(y)) with y = -|t|, or x / (1 + exp(y)) where t >= 0; y is hi + lo, x must be finite.
template <class T>
GRAPHRUN_FN T logistic(T x, T t, T low) {
  ExpParts<T> e = exp_parts(-abs(t));
  T down = select(t < 0.0f, low, -low);  // what is missing in -|t|
  T p = fma(e.p, down, e.p);
  T sum = 1.0f + p * e.s1 * e.s2;
  return select(t < 0.0f, (x * p / sum) * e.s1 * e.s2, x / sum);
}
template <class T>
GRAPHRUN_FN T sigmoid(T x) {
  return logistic(T(1.0f), x, T(0.0f));
}
template <class T>
GRAPHRUN_FN T softplus(T x) {
  return select(x > 0.0f, x, T(0.0f)) + log1p(exp(-abs(x)));
}

// exp(u^2 / 2) times the upper tail of the normal distribution from u on, u in [0, 15].
template <class T>
GRAPHRUN_FN T normal_tail(T u) {
  T scale = 1.0f / (u + 4.0f);
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
  T u = select(abs(x) < 10.0f, abs(x), T(10.0f));
  Pair<T> s = two_product(u, u);
  T tail = normal_tail(u * 1.41421356f) * 2.0f;
  T far = copysign(1.0f - exp(-s.hi) * fma(tail, -s.lo, tail), x);
  return select(x == x, select(u < 0.9f, erf_near(x), far), x);
}
template <class T>
GRAPHRUN_FN T gelu(T x) {
  T u = select(abs(x) < 15.0f, abs(x), T(15.0f));
  Pair<T> s = two_product(u, u);
  T tail = normal_tail(u);
  tail = fma(tail, s.lo * -0.5f, tail);
  ExpParts<T> e = exp_parts(s.hi * -0.5f);
  T below = -u * tail * e.p * e.s1 * e.s2;
  T above = x * (1.0f - tail * e.p * e.s1 * e.s2);
  T near = x * fma(erf_near(x * 0.707106781f), T(0.5f), T(0.5f));
  T y = select(u < 0.7f, near, select(x < 0.0f, below, above));
  return select(x == x, y, x);
}
template <class T>
GRAPHRUN_FN T gelu_tanh(T x) {
  // x * sigmoid(t), t = x (c1 + c2 x^2) in two words: exp() of the tail magnifies what t loses.
  T c = select(x > -15.0f, x, T(-15.0f));
  c = select(c < 15.0f, c, T(15.0f));
  Pair<T> z = two_product(c, c);
  Pair<T> p = two_product(z.hi, T(0x1.2444f2p-4f));
  Pair<T> h = two_sum(T(0x1.988454p+0f), p.hi);
  T low = h.lo + p.lo;
  low = fma(z.lo, T(0x1.2444f2p-4f), low);
  low = fma(z.hi, T(0x1.49b16ap-29f), low) + -0x1.857936p-25f;
  Pair<T> t = two_product(c, h.hi);
  T y = logistic(select(c < 15.0f, c, x), t.hi, fma(c, low, t.lo));
  return select(x == x, y, x);
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

// NumPy's: the exact remainder, with the sign of y. Each turn takes off a multiple of |y| that has 24 bits, exactly;
// |y| is scaled by 2^96 or 2^192 while that is below the rest, so that no quotient overflows.
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
  LogParts<T> v = log_parts(ax);
  T d = v.f + 2.0f;
  T d_low = v.f - (d - 2.0f);
  T s = v.f / d;
  T s_low = fma(-s, d_low, fma(-s, d, v.f)) / d;
  Pair<T> z = two_product(s, s);
  Pair<T> s3 = two_product(z.hi, s);
  Pair<T> cubic = two_product(s3.hi, T(0.666666627f));
  T rest = s3.hi * z.hi * horner(z.hi, T(0.400009692f), 0.284991741f, 0.242680535f);
  T low = fma(fma(z.lo, s, s3.lo), T(0.666666627f), cubic.lo + rest);
  low = fma(s_low, fma(z.hi, T(2.0f), T(2.0f)), fma(v.exponent, T(0x1.7f7d1cp-20f), low));
  Pair<T> h = two_sum(v.exponent * 0x1.62e4p-1f, s * 2.0f);
  Pair<T> g = two_sum(h.hi, cubic.hi);
  h = two_sum(g.hi, g.lo + (h.lo + low));
  h.hi = select(ax == infinity, infinity, select(ax == 0.0f, -infinity, h.hi));
  // exp(y log |x|)
  Pair<T> t = two_product(y, h.hi);
  T t_low = fma(y, h.lo, t.lo);
  ExpParts<T> e = exp_parts(t.hi);
  T r = select(abs(t.hi) < 200.0f, fma(e.p, t_low, e.p), e.p) * e.s1 * e.s2;
  r = select(abs(t.hi) < infinity, r, select(t.hi > 0.0f, infinity, select(t.hi < 0.0f, zero, t.hi)));
  // signs and the cases of IEEE 754
  auto whole = round(y) == y;
  auto even = round(y * 0.5f) == y * 0.5f;  // so is every float from 2^24 on
  auto odd = whole & !even;
  r = select(odd, copysign(r, x), r);
  r = select((x < 0.0f) & (ax < infinity) & !whole, from_pattern<T>(0x7fc00000), r);
  r = select(x == x, select(y == y, r, y), x);
  r = select((ax == 1.0f) & (abs(y) == infinity), one, r);
  return select((y == 0.0f) | (x == 1.0f), one, r);
}

// ---- functors -----------------------------------------------------------------------------------------------------

#define GRAPHRUN_UNARY(Functor, expression)     \
  struct Functor {                              \
    template <class T>                          \
    GRAPHRUN_FN static T apply(T x, T a, T b) { \
      (void)a;                                  \
      (void)b;                                  \
      return expression;                        \
    }                                           \
  };
#define GRAPHRUN_BINARY(Functor, expression)  \
  struct Functor {                            \
    template <class T>                        \
    GRAPHRUN_FN static auto apply(T x, T y) { \
      (void)y;                                \
      return expression;                      \
    }                                         \
  };

GRAPHRUN_UNARY(Neg, -x)
GRAPHRUN_UNARY(Abs, abs(x))
GRAPHRUN_UNARY(Sign, select(x > 0.0f, T(1.0f), select(x < 0.0f, T(-1.0f), select(x == 0.0f, T(0.0f), x))))
GRAPHRUN_UNARY(Square, x* x)
GRAPHRUN_UNARY(Sqrt, sqrt(x))
GRAPHRUN_UNARY(Rsqrt, 1.0f / sqrt(x))  // 1.5 ulp
GRAPHRUN_UNARY(Reciprocal, 1.0f / x)   // correctly rounded
GRAPHRUN_UNARY(Exp, exp(x))            // 1 ulp
GRAPHRUN_UNARY(Expm1, expm1(x))        // 2 ulp
GRAPHRUN_UNARY(Log, log(x))            // 1.5 ulp
GRAPHRUN_UNARY(Log1p, log1p(x))        // 2 ulp
GRAPHRUN_UNARY(Sin, sin(x))            // 2 ulp, for every finite x
GRAPHRUN_UNARY(Cos, cos(x))            // 2 ulp, for every finite x
GRAPHRUN_UNARY(Tan, tan(x))            // 4 ulp, for every finite x
GRAPHRUN_UNARY(Tanh, tanh(x))          // 2 ulp
GRAPHRUN_UNARY(Sigmoid, sigmoid(x))    // 3 ulp
GRAPHRUN_UNARY(Softplus, softplus(x))  // 3 ulp
GRAPHRUN_UNARY(Relu, select(x <= 0.0f, T(0.0f), x))
GRAPHRUN_UNARY(LeakyRelu, select(x > 0.0f, x, a* x))
GRAPHRUN_UNARY(Elu, select(x > 0.0f, x, a* expm1(x)))                                                // 3 ulp
GRAPHRUN_UNARY(Selu, select(x > 0.0f, 1.05070099f * x, 1.7580993f * expm1(x)))                       // 3 ulp
GRAPHRUN_UNARY(Gelu, gelu(x))                                                                        // 5 ulp
GRAPHRUN_UNARY(GeluTanh, gelu_tanh(x))                                                               // 4 ulp
GRAPHRUN_UNARY(Silu, logistic(select(x > -1000.0f, x, select(x == x, T(-1000.0f), x)), x, T(0.0f)))  // 4 ulp
GRAPHRUN_UNARY(Erf, erf(x))                                                                          // 2 ulp
GRAPHRUN_UNARY(Floor, floor(x))
GRAPHRUN_UNARY(Ceil, ceil(x))
GRAPHRUN_UNARY(Round, round(x))
GRAPHRUN_UNARY(Clip, select(x < a, a, select(x > b, b, x)))

GRAPHRUN_BINARY(Add, x + y)
GRAPHRUN_BINARY(Sub, x - y)
GRAPHRUN_BINARY(Mul, x* y)
GRAPHRUN_BINARY(Div, x / y)
GRAPHRUN_BINARY(Mod, mod(x, y))  // exact remainder; one rounding when y is added for its sign
GRAPHRUN_BINARY(Pow, pow(x, y))  // 2 ulp
GRAPHRUN_BINARY(Minimum, select((x <= y) | (x != x), x, y))
GRAPHRUN_BINARY(Maximum, select((x >= y) | (x != x), x, y))
GRAPHRUN_BINARY(SquareGradient, (x + x) * y)
GRAPHRUN_BINARY(ReluGradient, select(x > 0.0f, y, T(0.0f)))
GRAPHRUN_BINARY(TanhGradient, fma(-x, x, T(1.0f)) * y)  // 1.5 ulp; 1 - x * x rounded twice has few digits near 1
GRAPHRUN_BINARY(SigmoidGradient, x*(1.0f - x) * y)      // 2 ulp for x in [0, 1]
GRAPHRUN_BINARY(SoftplusGradient, sigmoid(x) * y)       // 4 ulp for x > -87
GRAPHRUN_BINARY(Equal, x == y)
GRAPHRUN_BINARY(NotEqual, x != y)
GRAPHRUN_BINARY(Less, x < y)
GRAPHRUN_BINARY(LessEqual, x <= y)
GRAPHRUN_BINARY(Greater, x > y)
GRAPHRUN_BINARY(GreaterEqual, x >= y)
GRAPHRUN_BINARY(LogicalAnd, x& y)
GRAPHRUN_BINARY(LogicalOr, x | y)
GRAPHRUN_BINARY(LogicalNot, !x)

#undef GRAPHRUN_UNARY
#undef GRAPHRUN_BINARY

}  // namespace graphrun::scalar
