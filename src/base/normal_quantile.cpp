#include "base/normal_quantile.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace graphrun {
namespace {

// c[0] + c[1] r + … + c[7] r^7
double polynomial(const double (&c)[8], double r) {
  double sum = c[7];
  for (int i = 6; i >= 0; --i) sum = sum * r + c[i];
  return sum;
}

// Natural logarithm of a normal positive number: x = m 2^e with m in [sqrt(1/2), sqrt(2)), and log(m) = 2 atanh(f),
// f = (m - 1) / (m + 1). |f| < 0.172, so the twelfth term of the series is below 1e-18.
double natural_log(double x) {
  constexpr double kLn2High = 0x1.62e42feep-1;  // 32 bits: its product with an exponent is exact
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1022;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffull) | 0x3fe0000000000000ull);  // [1/2, 1)
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2;
    --exponent;
  }
  const double f = (m - 1) / (m + 1);
  const double square = f * f;
  double series = 0;
  for (int k = 23; k >= 3; k -= 2) series = (series + 1.0 / k) * square;
  const double log_m = 2 * f + 2 * f * series;
  return exponent * kLn2High + (log_m + exponent * kLn2Low);
}

}  // namespace

double normal_quantile(double p) {
  // Numerators and denominators of AS241, lowest power first: about the median, then for the tails.
  static constexpr double kCentreTop[8] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                                           1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                                           3.3430575583588128105e4, 2.5090809287301226727e3};
  static constexpr double kCentreBottom[8] = {1.0,
                                              4.2313330701600911252e1,
                                              6.8718700749205790830e2,
                                              5.3941960214247511077e3,
                                              2.1213794301586595867e4,
                                              3.9307895800092710610e4,
                                              2.8729085735721942674e4,
                                              5.2264952788528545610e3};
  static constexpr double kTailTop[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                         3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                         2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double kTailBottom[8] = {1.0,
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
    return q * polynomial(kCentreTop, r) / polynomial(kCentreBottom, r);
  }
  const double r = std::sqrt(-natural_log(q < 0 ? p : 1 - p)) - 1.6;
  const double x = polynomial(kTailTop, r) / polynomial(kTailBottom, r);
  return q < 0 ? -x : x;
}

}  // namespace graphrun
