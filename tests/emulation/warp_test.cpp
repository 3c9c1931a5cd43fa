// The warp tile on the emulator: gradients of a whole pass, compared with the same sums in double.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "emulation/machine.h"
#include "emulation/warp_case.h"

namespace graphrun::cuda::tile::by_warp {
namespace {

constexpr unsigned kRows = 213, kThreads = 64;  // the last tile has five rows
using Case = WarpCase<kRows, kThreads>;

struct Problem {
  std::mt19937 random{7};
  std::vector<float> x = normal(kRows * 8, 1), y = normal(kRows, 1);
  alignas(16) std::array<float, 128> w1{}, w2{};
  alignas(16) std::array<float, 16> b1{};
  alignas(16) std::array<float, 8> b2{}, w3{};
  float b3 = 0.1f;

  Problem() { fill(w1), fill(w2), fill(b1), fill(b2), fill(w3); }
  std::vector<float> normal(std::size_t n, float deviation) {
    std::normal_distribution<float> distribution(0, deviation);
    std::vector<float> values(n);
    for (float& value : values) value = distribution(random);
    return values;
  }
  void fill(auto& to) {
    const std::vector<float> values = normal(to.size(), 0.3f);
    std::copy(values.begin(), values.end(), to.begin());
  }
};

// In the order of WarpCase, with the sums of the terms' magnitudes.
struct InDouble {
  std::vector<double> sum = std::vector<double>(Case::kSums), size = sum;
  void add(std::size_t i, double term) { sum[i] += term, size[i] += std::fabs(term); }

  explicit InDouble(const Problem& p) {
    for (unsigned r = 0; r < kRows; ++r) {
      const float* const x = &p.x[r * 8u];
      double h1[16], h2[8], d2[8];
      for (std::size_t u = 0; u < 16; ++u) {
        double z = p.b1[u];
        for (std::size_t k = 0; k < 8; ++k) z += double{x[k]} * p.w1[k * 16 + u];
        h1[u] = std::tanh(z);
      }
      double out = p.b3;
      for (std::size_t j = 0; j < 8; ++j) {
        double z = p.b2[j];
        for (std::size_t u = 0; u < 16; ++u) z += h1[u] * p.w2[u * 8 + j];
        h2[j] = std::tanh(z);
        out += h2[j] * p.w3[j];
      }
      const double error = out - p.y[r], d = 2 * error / kRows;
      add(0, error * error);
      add(1, d);
      for (std::size_t j = 0; j < 8; ++j) {
        d2[j] = d * p.w3[j] * (1 - h2[j] * h2[j]);
        add(2 + j, h2[j] * d);
        add(10 + j, d2[j]);
      }
      for (std::size_t u = 0; u < 16; ++u) {
        double g = 0;
        for (std::size_t j = 0; j < 8; ++j) {
          g += d2[j] * p.w2[u * 8 + j];
          add(162 + u * 8 + j, h1[u] * d2[j]);
        }
        const double d1 = g * (1 - h1[u] * h1[u]);
        add(18 + u, d1);
        for (std::size_t k = 0; k < 8; ++k) add(34 + k * 16 + u, x[k] * d1);
      }
    }
  }
};

std::vector<float> on_warps(const Problem& p, std::uint64_t seed) {
  std::vector<float> sums(Case::kSums);
  const WarpCaseArgs args{p.x.data(),  p.y.data(),  p.w1.data(), p.b1.data(), p.w2.data(),
                          p.b2.data(), p.w3.data(), p.b3,        sums.data()};
  emulation::Launch launch;
  launch.blocks = launch.cluster = 1;
  launch.threads = kThreads;
  launch.shared_bytes = sizeof(Case::Shared);
  launch.seed = seed;
  emulation::launch(launch, [&](void* shared) { Case::gradients(args, *static_cast<Case::Shared*>(shared)); });
  return sums;
}

// Maximum error, relative to the sum of the terms' magnitudes.
double worst(const std::vector<float>& sums, const InDouble& right) {
  double worst = 0;
  for (std::size_t i = 0; i < sums.size(); ++i)
    worst = std::fmax(worst, std::fabs(sums[i] - right.sum[i]) / right.size[i]);
  return worst;
}

TEST(WarpTile, SumsAreThoseInDouble) {
  const Problem problem;
  const InDouble right(problem);
  const std::vector<float> sums = on_warps(problem, 1);
  EXPECT_LT(worst(sums, right), 3e-7);
  EXPECT_EQ(sums, on_warps(problem, 2)) << "another schedule";
}

// The bound detects a change in the last row, and factors truncated by tensor cores (10 fraction bits).
TEST(WarpTile, ErrorsAreSeen) {
  const Problem problem;
  const InDouble right(problem);
  Problem other = problem;
  other.x[8 * (kRows - 1)] += 0.1f;
  EXPECT_GT(worst(on_warps(other, 1), right), 1e-5) << "the last row counts";
  Problem coarse = problem;
  for (float& w : coarse.w1) w = scalar::from_bits(scalar::bits(w) & ~0x1fff);
  EXPECT_GT(worst(on_warps(coarse, 1), right), 1e-5) << "as if weights were not split";
}

}  // namespace
}  // namespace graphrun::cuda::tile::by_warp
