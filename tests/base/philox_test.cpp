#include "base/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "base/random_bits.h"

namespace graphrun {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known-answer vectors published with the generator (Random123, philox4x32 with 10 rounds).
TEST(Philox, KnownAnswers) {
  // A stream's block counts with (block, step), low words first.
  EXPECT_EQ(Stream{0}.block(0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  EXPECT_EQ(Stream{kOnes}.block(kOnes, kOnes), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Stream{0x299f31d0'a4093822}.block(0x03707344'13198a2e, 0x85a308d3'243f6a88),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Fnv1a, KnownAnswers) {
  const auto hash = [](std::string_view text) { return fnv1a(std::as_bytes(std::span(text.data(), text.size()))); };
  EXPECT_EQ(hash(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash("foobar"), 0x85944171f73967e8u);
  const std::string_view foo = "foo", bar = "bar";
  EXPECT_EQ(fnv1a(std::as_bytes(std::span(bar)), fnv1a(std::as_bytes(std::span(foo)))), hash("foobar"));
}

TEST(Stream, SeedNameStepAndBlockAllCount) {
  std::set<Words> seen;
  for (const std::uint64_t seed : {0ull, 1ull, 1ull << 32}) {
    for (const char* name : {"", "W", "b", "h1.W"}) {
      for (const std::uint64_t step : {0ull, 1ull, 1ull << 32}) {
        for (const std::uint64_t block : {0ull, 1ull, 1ull << 32}) {
          seen.insert(Stream::named(seed, name).block(step, block));
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 3u * 4 * 3 * 3);
}

// Bits that must never change: a saved seed has to give the same weights in every later version.
TEST(Draws, Golden) {
  const Stream stream = Stream::named(123, "h1.W");
  EXPECT_EQ(stream.block(7, 2), (Words{0x1993119e, 0x30e7b6a9, 0xd667bb69, 0x1d16fcfe}));
  std::vector<float> uniform(5), normal(5);
  fill_uniform(stream, 0, -1, 1, uniform);
  fill_normal(stream, 0, 0, 0.1, normal);
  EXPECT_EQ(uniform,
            (std::vector<float>{-0x1.40efp-4f, -0x1.13fbp-6f, -0x1.3facd4p-1f, -0x1.b41014p-1f, 0x1.aa32e8p-1f}));
  EXPECT_EQ(normal,
            (std::vector<float>{-0x1.424dap-7f, -0x1.14bb66p-9f, -0x1.6ae484p-4f, -0x1.280a52p-3f, 0x1.1aa0d4p-3f}));
}

TEST(Draws, ElementsDoNotDependOnTheLength) {
  const Stream stream = Stream::named(1, "w");
  std::vector<float> all(103);
  fill_normal(stream, 3, 0, 1, all);
  for (const std::size_t length : {0u, 1u, 3u, 4u, 6u, 102u}) {
    std::vector<float> part(length);
    fill_normal(stream, 3, 0, 1, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin())) << length;
  }
}

TEST(Draws, UniformStaysInItsHalfOpenRange) {
  std::vector<float> draws(1 << 16);
  // Ends that are no floats, and a range so narrow that rounding wants to leave it.
  const std::pair<double, double> ranges[] = {{0, 1}, {-0.1, 0.1}, {1, 1.0000003}, {0.1, 0.3}};
  for (const auto& [low, high] : ranges) {
    fill_uniform(Stream::named(5, "u"), 0, low, high, draws);
    for (const float draw : draws) {
      ASSERT_GE(draw, low);
      ASSERT_LT(draw, high);
    }
  }
}

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

Moments moments_of(const std::vector<float>& draws) {
  Moments m;
  const double n = static_cast<double>(draws.size());
  for (const double x : draws) m.mean += x / n;
  for (const double x : draws) {
    const double d = x - m.mean;
    m.variance += d * d / n;
    m.skewness += d * d * d / n;
    m.kurtosis += d * d * d * d / n;
  }
  m.skewness /= std::pow(m.variance, 1.5);
  m.kurtosis /= m.variance * m.variance;
  return m;
}

// Tolerances are five standard errors of a million draws.
TEST(Draws, MomentsOfUniform) {
  std::vector<float> draws(1'000'000);
  fill_uniform(Stream::named(42, "u"), 0, 0, 1, draws);
  const Moments m = moments_of(draws);
  EXPECT_NEAR(m.mean, 0.5, 5 * 0.2887e-3);
  EXPECT_NEAR(m.variance, 1.0 / 12, 5 * 0.0745e-3);
}

TEST(Draws, MomentsOfNormal) {
  std::vector<float> draws(1'000'000);
  fill_normal(Stream::named(42, "n"), 0, 3, 2, draws);
  const Moments m = moments_of(draws);
  EXPECT_NEAR(m.mean, 3, 5 * 2e-3);
  EXPECT_NEAR(m.variance, 4, 5 * 4 * 1.414e-3);
  EXPECT_NEAR(m.skewness, 0, 5 * 2.45e-3);
  EXPECT_NEAR(m.kurtosis, 3, 5 * 4.9e-3);
}

// Quantiles of p = (word + 1/2) / 2^32, computed with 50 digits.
TEST(NormalQuantile, AgainstFiftyDigits) {
  const std::pair<std::uint32_t, double> cases[] = {
      {0x00000000, -0x1.95a1198fcf3d6p+2}, {0x00000001, -0x1.8aa6c7fe07fe0p+2}, {1000, -0x1.428cebbcafa42p+2},
      {123456789, -0x1.e64a7b3b07d57p+0},  {0x13333333, -0x1.7085226b1fc71p+0}, {0x40000000, -0x1.5956b872030bap-1},
      {0x80000000, 0x1.40d931ff62706p-32}, {0xdeadbeef, 0x1.20293483584e6p+0},  {0xffffffff, 0x1.95a1198fcf3d6p+2},
  };
  for (const auto& [word, expected] : cases) {
    const double p = (word + 0.5) * 0x1p-32;
    EXPECT_NEAR(bits::normal_quantile(p) / expected, 1, 1e-15) << word;
  }
}

TEST(NormalQuantile, InvertsTheDistributionFunction) {
  for (double p = 0x1p-33; p < 0.5; p *= 1.07) {
    const double x = bits::normal_quantile(p);
    EXPECT_NEAR(0.5 * std::erfc(-x / std::sqrt(2.0)) / p, 1, 1e-13) << p;
    EXPECT_NEAR(bits::normal_quantile(1 - p), -x, 1e-5 * std::abs(x)) << p;  // 1 - p has fewer bits than p
  }
  EXPECT_EQ(bits::normal_quantile(0.5), 0);
}

TEST(NormalQuantile, SymmetricBitForBitOnItsGrid) {
  for (std::uint64_t word = 0; word < 0x80000000; word += 0x123457) {
    EXPECT_EQ(bits::normal_quantile((static_cast<double>(word) + 0.5) * 0x1p-32),
              -bits::normal_quantile((static_cast<double>(0xffffffff - word) + 0.5) * 0x1p-32));
  }
}

// Every key and epoch gives a bijection, and different ones different orders.
TEST(Permutation, IsABijectionForEverySize) {
  for (const std::uint64_t n : {1u, 2u, 3u, 7u, 64u, 65u, 1000u}) {
    std::vector<bool> seen(n, false);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t to = bits::permuted(i, n, 0x123456789abcdefull, 3);
      ASSERT_LT(to, n);
      ASSERT_FALSE(seen[to]) << n << " " << i;
      seen[to] = true;
    }
  }
}

TEST(Permutation, ChangesWithEpochAndKeyAndMovesAlmostAll) {
  int stay = 0;
  int same = 0;
  int same_key = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t to = bits::permuted(i, 1000, 1, 0);
    stay += to == i;
    same += to == bits::permuted(i, 1000, 1, 1);
    same_key += to == bits::permuted(i, 1000, 2, 0);
  }
  EXPECT_LT(stay, 10);
  EXPECT_LT(same, 10);
  EXPECT_LT(same_key, 10);
}

}  // namespace
}  // namespace graphrun
