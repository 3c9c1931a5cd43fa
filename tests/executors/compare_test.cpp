// How far values may differ, and where they do.
#include "session/verify/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "graph/ops/op_def.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

using Floats = std::vector<float>;

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

TEST(Compare, TolerancesFollowTheOp) {
  EXPECT_EQ(agreement_of(*find_op("tanh")), Agreement::relative);
  EXPECT_EQ(agreement_of(Op::sub), Agreement::relative);
  EXPECT_EQ(agreement_of(Op::matmul), Agreement::scaled);
  EXPECT_EQ(agreement_of(Op::sum), Agreement::scaled);
  EXPECT_EQ(agreement_of(*find_op("log_softmax")), Agreement::absolute);
  for (const Op op :
       {*find_op("floor"), *find_op("sign"), Op::where, Op::maximum, Op::minibatch, Op::record, Op::assign,
        Op::broadcast_to, Op::max, Op::slice, *find_op("random_uniform"), *find_op("random_normal")})
    EXPECT_EQ(agreement_of(op), Agreement::exact) << name_of(op);
}

// The two solutions of a nearly singular system are far apart, but both solve it.
TEST(Compare, SolutionsByTheirResidual) {
  EXPECT_EQ(agreement_of(*find_op("solve_spd")), Agreement::residual);
  const auto bytes = [](const Floats& values) {
    const std::span<const std::byte> view = bytes_of(values);
    return std::vector<std::byte>(view.begin(), view.end());
  };
  const std::vector<std::vector<std::byte>> operands = {bytes({1, 1, 99, 1}), bytes({2, 2}), bytes({1e-7f})};
  const Residual one = residual_of(DType::f32, operands, bytes({1, 1})),
                 far = residual_of(DType::f32, operands, bytes({3, -1})),
                 bad = residual_of(DType::f32, operands, bytes({1, 1.01f}));
  const auto agree = [&](const Residual& got) {
    return !compare({{DType::f32, {2}, 0}, got.product, one.product, Agreement::scaled, one.scale}).wrong;
  };
  EXPECT_TRUE(agree(far));
  EXPECT_FALSE(agree(bad));
}

TEST(Compare, FloatsAgreeWithinTheirTolerance) {
  const TensorType scalar{DType::f32, {1}, 0};
  const auto agree = [&](float got, float expected, Agreement rule, float scale = 0) {
    const Floats a = {got}, b = {expected}, s = {scale};
    return Sides{scalar, bytes_of(a), bytes_of(b), rule, bytes_of(s)}.agrees(0);
  };
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(agree(1.000009f, 1, Agreement::relative));
  EXPECT_FALSE(agree(1.000011f, 1, Agreement::relative));
  EXPECT_FALSE(agree(1e-20f, 1.1e-20f, Agreement::relative));
  EXPECT_TRUE(agree(0, 1e-39f, Agreement::relative));  // subnormal, flushed
  EXPECT_FALSE(agree(0, 1e-37f, Agreement::relative));
  EXPECT_TRUE(agree(1e-4f, 0, Agreement::scaled, 100));  // what is left of terms that cancel
  EXPECT_FALSE(agree(1e-2f, 0, Agreement::scaled, 100));
  EXPECT_TRUE(agree(0, -2e-9f, Agreement::absolute));
  EXPECT_FALSE(agree(0, -2e-4f, Agreement::absolute));
  EXPECT_FALSE(agree(1.0000001f, 1, Agreement::exact));
  EXPECT_TRUE(agree(-0.0f, 0, Agreement::exact));
  for (const Agreement rule : {Agreement::exact, Agreement::relative, Agreement::absolute, Agreement::scaled}) {
    EXPECT_TRUE(agree(std::nanf(""), std::nanf(""), rule, inf));
    EXPECT_FALSE(agree(std::nanf(""), 1, rule, inf));
    EXPECT_FALSE(agree(1, std::nanf(""), rule, std::nanf("")));
    EXPECT_TRUE(agree(inf, inf, rule, inf));
    EXPECT_FALSE(agree(inf, -inf, rule, inf));
    EXPECT_FALSE(agree(3e38f, inf, rule, inf));
    EXPECT_FALSE(agree(inf, 3e38f, rule, inf));
  }
}

TEST(Compare, TheNeighbourhoodIsAMatrix) {
  std::vector<std::int32_t> got(24), expected(24);
  for (int i = 0; i < 24; ++i) got[static_cast<std::size_t>(i)] = expected[static_cast<std::size_t>(i)] = i;
  got[17] = -1;
  got[18] = -2;
  const Sides sides{{DType::i32, {2, 4, 3}, 0}, bytes_of(got), bytes_of(expected)};
  EXPECT_EQ(index_of(sides.type.shape, 17), (std::vector<std::int64_t>{1, 1, 2}));
  EXPECT_EQ(neighbourhood(sides, 17, "cpu", "ref"),
            "          cpu             |  ref\n"
            "            0    1    2   |    0    1    2\n"
            "       0   12   13   14   |   12   13   14\n"
            "       1   15   16  [-1]  |   15   16  [17]\n"
            "       2   -2*  19   20   |   18*  19   20\n"
            "       3   21   22   23   |   21   22   23\n");
}

TEST(VerifyCompare, TheFirstWrongElementOfManyIsFound) {
  constexpr std::size_t kMany = 3 * kPartElements + 5;  // ranges that several threads look at
  std::vector<float> got(kMany, 1), expected(kMany, 1);
  const auto sides = [&] {
    return Sides{{DType::f32, {static_cast<std::int64_t>(kMany)}, 0},
                 std::as_bytes(std::span(got)),
                 std::as_bytes(std::span(expected)),
                 Agreement::relative};
  };
  EXPECT_FALSE(compare(sides()).wrong);
  EXPECT_EQ(compare(sides()).worst, 0);
  got[2 * kPartElements] = 1 + 0x1p-18f;
  EXPECT_FALSE(compare(sides()).wrong);
  EXPECT_EQ(compare(sides()).worst, sides().ratio(2 * kPartElements));
  for (const std::size_t wrong : {kMany - 1, 2 * kPartElements + 7, kPartElements - 1, std::size_t{0}}) {
    got[wrong] = static_cast<float>(2 + wrong % 3);
    EXPECT_EQ(compare(sides()).wrong, wrong);
    EXPECT_EQ(compare(sides()).worst, sides().ratio(wrong)) << "later ones do not count";
  }
}

}  // namespace
}  // namespace graphrun
