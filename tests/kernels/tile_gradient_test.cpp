// Weight gradients on tiles against double, over shapes, rows that fill no vector and instruction sets.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/tiles/tile_steps.h"

namespace graphrun {
namespace {

using i64 = std::int64_t;
using cpu::DenseGradientTile;
using cpu::TileRows;

struct Case {
  i64 m, n, rows;
  bool in_vectors;  // a lies as a data set read in place, not as a tile
};

// Rows of features in the layout that TileRows describes; what lies after the last row is NaN.
struct Rows {
  std::vector<float> data;
  i64 feature, vector;
  Rows(i64 features, i64 rows, bool in_vectors, std::mt19937& random)
      : data(static_cast<std::size_t>(features * ((rows + 15) / 16 * 16)), std::nanf("")),
        feature(in_vectors ? 16 : (rows + 15) / 16 * 16),
        vector(in_vectors ? 16 * features : 16) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (i64 f = 0; f < features; ++f)
      for (i64 r = 0; r < rows; ++r) data[at(f, r)] = uniform(random);
  }
  std::size_t at(i64 f, i64 r) const { return static_cast<std::size_t>(f * feature + r / 16 * vector + r % 16); }
  TileRows rows() const { return {data.data(), feature, vector}; }
};

constexpr float kGuard = 12345;

using Gradient = void (*)(const DenseGradientTile&);

std::vector<float> run(Gradient gradient, const Case& c, const Rows& a, const Rows& b,
                       const std::vector<float>& start) {
  std::vector<float> out = start;
  out.resize(start.size() + 16, kGuard);
  gradient({a.rows(), b.rows(), out.data(), c.m, c.n, c.rows, false});
  for (std::size_t i = start.size(); i < out.size(); ++i) EXPECT_EQ(out[i], kGuard) << "wrote past the end";
  out.resize(start.size());
  return out;
}

// Both kernels take every shape: which is the faster one is asked elsewhere.
void expect_gradient(const Case& c, Gradient cpu::IsaTable::*kernel) {
  SCOPED_TRACE(fmt::format("{} x {}, {} rows{}", c.m, c.n, c.rows, c.in_vectors ? " in vectors" : ""));
  std::mt19937 random(static_cast<unsigned>(c.m * 1000 + c.n * 10 + c.rows));
  const Rows a(c.m, c.rows, c.in_vectors, random), b(c.n, c.rows, false, random);
  std::vector<float> start(static_cast<std::size_t>(c.m * c.n));
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = static_cast<float>(i % 7) / 4;
  const std::vector<float> plain = run(cpu::isa_table(Isa::plain).*kernel, c, a, b, start);
  for (i64 m = 0; m < c.m; ++m) {
    for (i64 n = 0; n < c.n; ++n) {
      const auto i = static_cast<std::size_t>(m * c.n + n);
      double sum = start[i], scale = std::fabs(start[i]);
      for (i64 r = 0; r < c.rows; ++r) {
        const double term = double{a.data[a.at(m, r)]} * double{b.data[b.at(n, r)]};
        sum += term;
        scale += std::fabs(term);
      }
      ASSERT_NEAR(plain[i], sum, 1e-6 * scale) << "at " << m << ", " << n;
    }
  }
  for (const Isa isa : available_isas())
    ASSERT_EQ(run(cpu::isa_table(isa).*kernel, c, a, b, start), plain) << name_of(isa) << " differs from plain";
}

// Every size of a block of features and of outputs occurs, and what is left of rows, features and outputs after one.
std::vector<Case> cases() {
  std::vector<Case> result;
  for (const i64 m : {1, 2, 5, 7, 11, 24, 25, 40})
    for (const i64 n : {1, 4, 8, 10, 15, 16, 17, 31, 32, 33, 48, 50}) result.push_back({m, n, 37, false});
  for (i64 m = 3; m <= 24; ++m) result.push_back({m, 12, 16, m % 2 == 0}), result.push_back({m, 40, 5, m % 2 == 1});
  for (const i64 rows : {1, 2, 15, 16, 17, 48, 63, 64, 65, 80, 128, 129, 200})
    for (const bool in_vectors : {false, true}) result.push_back({13, 19, rows, in_vectors});
  result.push_back({784, 10, 100, true});
  result.push_back({70, 100, 64, false});
  return result;
}

TEST(TileGradient, OutputsAsLanes) {
  for (const Case& c : cases()) expect_gradient(c, &cpu::IsaTable::wide_gradient);
}

TEST(TileGradient, RowsAsLanes) {
  for (const Case& c : cases()) expect_gradient(c, &cpu::IsaTable::dense_gradient);
}

// The lanes of the gradient, then those of the sums of b's rows.
std::vector<float> lanes_of(const cpu::IsaTable& table, const Case& c, const Rows& a, const Rows& b, bool together) {
  const auto products = static_cast<std::size_t>(c.m * c.n) * 16;
  const std::size_t all = products + static_cast<std::size_t>(c.n) * 16;
  std::vector<float> lanes(all + 16, kGuard);
  for (std::size_t i = 0; i < all; ++i) lanes[i] = static_cast<float>(i % 7) / 4;
  DenseGradientTile call{a.rows(), b.rows(), lanes.data(), c.m, c.n, c.rows, true};
  if (together) call.sums_of_b = lanes.data() + products;
  table.dense_gradient(call);
  if (!together) table.sum_rows(lanes.data() + products, true, b.rows(), c.n, c.rows);
  for (std::size_t i = all; i < lanes.size(); ++i) EXPECT_EQ(lanes[i], kGuard) << "wrote past the end";
  return lanes;
}

TEST(TileGradient, TakesAlongTheSumOfItsSecondOperand) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(fmt::format("{} x {}, {} rows", c.m, c.n, c.rows));
    std::mt19937 random(static_cast<unsigned>(c.m * 1000 + c.n * 10 + c.rows));
    const Rows a(c.m, c.rows, c.in_vectors, random), b(c.n, c.rows, c.in_vectors, random);
    const std::vector<float> apart = lanes_of(cpu::isa_table(Isa::plain), c, a, b, false);
    for (const Isa isa : available_isas())
      ASSERT_EQ(lanes_of(cpu::isa_table(isa), c, a, b, true), apart) << name_of(isa);
  }
}

}  // namespace
}  // namespace graphrun
