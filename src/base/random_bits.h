// random_bits.h: counter-based random numbers with the same bits on every host and device: the counter of an element is
// its index. Contract: pure functions; no includes on the device side; only integer arithmetic and + - * / sqrt of
// doubles, which IEEE 754 rounds alike everywhere (contraction off). Words come from Philox4x32-10 (Salmon, Moraes,
// Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"). Not here: keys from names (philox.h), loops
// (kernels).
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define GRAPHRUN_BITS_FN __host__ __device__ inline
#else
#define GRAPHRUN_BITS_FN inline
#endif

// Prevents inlining of a long function for every number of a row in kernels that are compiled on load.
#if defined(__CUDACC_RTC__)
#define GRAPHRUN_BITS_CALLED __device__ __noinline__ inline
#else
#define GRAPHRUN_BITS_CALLED GRAPHRUN_BITS_FN
#endif

namespace graphrun::bits {

using u32 = unsigned int;
using u64 = unsigned long long;

struct Words {
  u32 w[4];
};

GRAPHRUN_BITS_FN Words philox4x32(Words counter, u32 key0, u32 key1) {
  for (int round = 0; round < 10; ++round) {
    const u64 a = u64{0xD2511F53u} * counter.w[0];
    const u64 b = u64{0xCD9E8D57u} * counter.w[2];
    counter = {{static_cast<u32>(b >> 32) ^ counter.w[1] ^ key0, static_cast<u32>(b),
                static_cast<u32>(a >> 32) ^ counter.w[3] ^ key1, static_cast<u32>(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// Block of four words at a step. `key` holds the stream's two words, the first in the low half.
GRAPHRUN_BITS_FN Words words(u64 key, u64 step, u64 block) {
  const Words counter = {
      {static_cast<u32>(block), static_cast<u32>(block >> 32), static_cast<u32>(step), static_cast<u32>(step >> 32)}};
  return philox4x32(counter, static_cast<u32>(key), static_cast<u32>(key >> 32));
}

// Element i at a step: word i % 4 of block i / 4.
GRAPHRUN_BITS_FN u32 word(u64 key, u64 step, u64 i) {
  return words(key, step, i / 4).w[i % 4];
}

// Uniform in [0, 1), 24 bits, exact.
GRAPHRUN_BITS_FN double unit(u32 word) {
  return (word >> 8) * 0x1p-24;
}

// Adjacent floats; x is finite.
GRAPHRUN_BITS_FN float next_up(float x) {
  const u32 bits = __builtin_bit_cast(u32, x);
  if (x == 0) return __builtin_bit_cast(float, 1u);
  return __builtin_bit_cast(float, x > 0 ? bits + 1u : bits - 1u);
}
GRAPHRUN_BITS_FN float next_down(float x) {
  return -next_up(-x);
}

// Uniform float in [low, high). If rounding leaves the interval, returns the next float inside.
GRAPHRUN_BITS_FN float uniform(u32 word, double low, double high) {
  float value = static_cast<float>(low + (high - low) * unit(word));
  if (static_cast<double>(value) >= high) value = next_down(value);
  if (static_cast<double>(value) < low) value = next_up(value);
  return value;
}

GRAPHRUN_BITS_FN double root(double x) {
#if defined(__CUDA_ARCH__)
  return __dsqrt_rn(x);
#else
  return __builtin_sqrt(x);
#endif
}

// c[0] + c[1] r + … + c[7] r^7
GRAPHRUN_BITS_FN double polynomial(const double (&c)[8], double r) {
  double sum = c[7];
  for (int i = 6; i >= 0; --i) sum = sum * r + c[i];
  return sum;
}

// Natural logarithm of a normal positive number: x = m 2^e with m in [sqrt(1/2), sqrt(2)), and log(m) = 2 atanh(f),
// f = (m - 1) / (m + 1). |f| < 0.172, so the twelfth term of the series is below 1e-18.
GRAPHRUN_BITS_FN double natural_log(double x) {
  const double ln2_high = 0x1.62e42feep-1;  // 32 bits: its product with an exponent is exact
  const double ln2_low = 0x1.a39ef35793c76p-33;
  const u64 bits = __builtin_bit_cast(u64, x);
  int exponent = static_cast<int>(bits >> 52) - 1022;
  double m = __builtin_bit_cast(double, (bits & 0x000fffffffffffffull) | 0x3fe0000000000000ull);  // [1/2, 1)
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2;
    --exponent;
  }
  const double f = (m - 1) / (m + 1);
  const double square = f * f;
  double series = 0;
  for (int k = 23; k >= 3; k -= 2) series = (series + 1.0 / k) * square;
  const double log_m = 2 * f + 2 * f * series;
  return exponent * ln2_high + (log_m + exponent * ln2_low);
}

// Inverse of the standard normal CDF for 1.4e-11 < p < 1 - 1.4e-11: AS241, function PPND16 (Wichura 1988, "The
// percentage points of the normal distribution", Applied Statistics 37). Relative error below 1e-15, measured with our
// own logarithm against a 50-digit reference. Coefficients of numerators and denominators, lowest power first: for the
// center, then for the tails.
GRAPHRUN_BITS_CALLED double normal_quantile(double p) {
  const double centre_top[8] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                                1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                                3.3430575583588128105e4, 2.5090809287301226727e3};
  const double centre_bottom[8] = {1.0,
                                   4.2313330701600911252e1,
                                   6.8718700749205790830e2,
                                   5.3941960214247511077e3,
                                   2.1213794301586595867e4,
                                   3.9307895800092710610e4,
                                   2.8729085735721942674e4,
                                   5.2264952788528545610e3};
  const double tail_top[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                              3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                              2.27238449892691845833e-2, 7.74545014278341407640e-4};
  const double tail_bottom[8] = {1.0,
                                 2.05319162663775882187e0,
                                 1.67638483018380384940e0,
                                 6.89767334985100004550e-1,
                                 1.48103976427480074590e-1,
                                 1.51986665636164571966e-2,
                                 5.47593808499534494600e-4,
                                 1.05075007164441684324e-9};
  const double q = p - 0.5;
  if (q >= -0.425 && q <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(centre_top, r) / polynomial(centre_bottom, r);
  }
  const double r = root(-natural_log(q < 0 ? p : 1 - p)) - 1.6;
  const double x = polynomial(tail_top, r) / polynomial(tail_bottom, r);
  return q < 0 ? -x : x;
}

// p in (0, 1) is exact and symmetric about 1/2; samples reach 6.3 standard deviations.
GRAPHRUN_BITS_FN float normal(u32 word, double mean, double std_dev) {
  return static_cast<float>(mean + std_dev * normal_quantile((word + 0.5) * 0x1p-32));
}

// Position of element i of 0 … n-1 in the permutation of an epoch: a four-round Feistel network over the smallest even
// number of bits that holds n, with cycle walking (Black and Rogaway 2002, "Ciphers with arbitrary finite domains"). A
// bijection for every key without a table, so each executor computes each row independently.
GRAPHRUN_BITS_FN u32 half_bits(u64 n) {
  u32 half = 1;
  while (half < 32 && (u64{1} << (2 * half)) < n) ++half;
  return half;
}
GRAPHRUN_BITS_FN u64 permuted_once(u64 i, u32 half, u64 key, u64 epoch) {  // one step of the cycle walk
  const u64 mask = (u64{1} << half) - 1;
  u64 left = i >> half;
  u64 right = i & mask;
  for (u32 round = 0; round < 4; ++round) {
    const Words counter = {{static_cast<u32>(right), round, static_cast<u32>(epoch), static_cast<u32>(epoch >> 32)}};
    const u64 mixed = philox4x32(counter, static_cast<u32>(key), static_cast<u32>(key >> 32)).w[0];
    const u64 next = left ^ (mixed & mask);
    left = right;
    right = next;
  }
  return (left << half) | right;
}
GRAPHRUN_BITS_FN u64 permuted(u64 i, u64 n, u64 key, u64 epoch) {
  const u32 half = half_bits(n);
  do {
    i = permuted_once(i, half, key, epoch);
  } while (i >= n);
  return i;
}

}  // namespace graphrun::bits
