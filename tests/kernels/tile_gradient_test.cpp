// Weight gradients on tiles against long double, over shapes, rows that fill no vector and instruction sets.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/tiles/tile_steps.h"

namespace graphrun {
namespace {

using i64 = std::int64_t;
using cpu::table_of;
using Reals = ::testing::Types<float, double>;

struct Case {
  i64 m, n, rows;
  bool in_vectors;  // a lies as a data set read in place, not as a tile
};

// Rows of features in the layout that TileRows describes; what lies after the last row is NaN.
template <class Real>
struct Rows {
  static constexpr i64 kLanes = cpu::kLanesOf<Real>;
  std::vector<Real> data;
  i64 feature, vector;
  Rows(i64 features, i64 rows, bool in_vectors, std::mt19937& random)
      : data(static_cast<std::size_t>(features * whole(rows)), std::numeric_limits<Real>::quiet_NaN()),
        feature(in_vectors ? kLanes : whole(rows)),
        vector(in_vectors ? kLanes * features : kLanes) {
    std::uniform_real_distribution<Real> uniform(-1, 1);
    for (i64 f = 0; f < features; ++f)
      for (i64 r = 0; r < rows; ++r) data[at(f, r)] = uniform(random);
  }
  static i64 whole(i64 rows) { return (rows + kLanes - 1) / kLanes * kLanes; }
  std::size_t at(i64 f, i64 r) const {
    return static_cast<std::size_t>(f * feature + r / kLanes * vector + r % kLanes);
  }
  cpu::TileRowsOf<Real> rows() const { return {data.data(), feature, vector}; }
};

constexpr float kGuard = 12345;

template <class Real>
using Gradient = void (*)(const cpu::DenseGradientTileOf<Real>&);

template <class Real>
std::vector<Real> run(Gradient<Real> gradient, const Case& c, const Rows<Real>& a, const Rows<Real>& b,
                      const std::vector<Real>& start) {
  std::vector<Real> out = start;
  out.resize(start.size() + 16, kGuard);
  gradient({a.rows(), b.rows(), out.data(), c.m, c.n, c.rows, false});
  for (std::size_t i = start.size(); i < out.size(); ++i) EXPECT_EQ(out[i], kGuard) << "wrote past the end";
  out.resize(start.size());
  return out;
}

// Both kernels take every shape: which is the faster one is asked elsewhere.
template <class Real>
void expect_gradient(const Case& c, Gradient<Real> cpu::IsaTableOf<Real>::*kernel) {
  SCOPED_TRACE(fmt::format("{} x {}, {} rows{}", c.m, c.n, c.rows, c.in_vectors ? " in vectors" : ""));
  std::mt19937 random(static_cast<unsigned>(c.m * 1000 + c.n * 10 + c.rows));
  const Rows<Real> a(c.m, c.rows, c.in_vectors, random), b(c.n, c.rows, false, random);
  std::vector<Real> start(static_cast<std::size_t>(c.m * c.n));
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = static_cast<Real>(i % 7) / 4;
  const std::vector<Real> plain = run(table_of<Real>(Isa::plain).*kernel, c, a, b, start);
  for (i64 m = 0; m < c.m; ++m) {
    for (i64 n = 0; n < c.n; ++n) {
      const auto i = static_cast<std::size_t>(m * c.n + n);
      long double sum = start[i], scale = std::fabs(start[i]);
      for (i64 r = 0; r < c.rows; ++r) {
        const long double term = static_cast<long double>(a.data[a.at(m, r)]) * b.data[b.at(n, r)];
        sum += term;
        scale += std::fabs(term);
      }
      ASSERT_LE(std::fabs(plain[i] - sum), 8 * std::numeric_limits<Real>::epsilon() * scale) << "at " << m << ", " << n;
    }
  }
  for (const Isa isa : available_isas())
    ASSERT_EQ(run(table_of<Real>(isa).*kernel, c, a, b, start), plain) << name_of(isa) << " differs from plain";
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

template <class Real>
class TileGradient : public ::testing::Test {};
TYPED_TEST_SUITE(TileGradient, Reals);

TYPED_TEST(TileGradient, OutputsAsLanes) {
  for (const Case& c : cases()) expect_gradient<TypeParam>(c, &cpu::IsaTableOf<TypeParam>::wide_gradient);
}

TYPED_TEST(TileGradient, RowsAsLanes) {
  for (const Case& c : cases()) expect_gradient<TypeParam>(c, &cpu::IsaTableOf<TypeParam>::dense_gradient);
}

// The lanes of the gradient, then those of the sums of b's rows.
template <class Real>
std::vector<Real> lanes_of(Isa isa, const Case& c, const Rows<Real>& a, const Rows<Real>& b, bool together) {
  const cpu::IsaTableOf<Real>& table = table_of<Real>(isa);
  const auto products = static_cast<std::size_t>(c.m * c.n) * cpu::kLanesOf<Real>;
  const std::size_t all = products + static_cast<std::size_t>(c.n) * cpu::kLanesOf<Real>;
  std::vector<Real> lanes(all + 16, kGuard);
  for (std::size_t i = 0; i < all; ++i) lanes[i] = static_cast<Real>(i % 7) / 4;
  cpu::DenseGradientTileOf<Real> call{a.rows(), b.rows(), lanes.data(), c.m, c.n, c.rows, true};
  if (together) call.sums_of_b = lanes.data() + products;
  table.dense_gradient(call);
  if (!together) table.sum_rows(lanes.data() + products, true, b.rows(), c.n, c.rows);
  for (std::size_t i = all; i < lanes.size(); ++i) EXPECT_EQ(lanes[i], kGuard) << "wrote past the end";
  return lanes;
}

TYPED_TEST(TileGradient, TakesAlongTheSumOfItsSecondOperand) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(fmt::format("{} x {}, {} rows", c.m, c.n, c.rows));
    std::mt19937 random(static_cast<unsigned>(c.m * 1000 + c.n * 10 + c.rows));
    const Rows<TypeParam> a(c.m, c.rows, c.in_vectors, random), b(c.n, c.rows, c.in_vectors, random);
    const std::vector<TypeParam> apart = lanes_of(Isa::plain, c, a, b, false);
    for (const Isa isa : available_isas()) ASSERT_EQ(lanes_of(isa, c, a, b, true), apart) << name_of(isa);
  }
}

}  // namespace
}  // namespace graphrun
