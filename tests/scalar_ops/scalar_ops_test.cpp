// The accuracy of every scalar functor against std:: in double, over sweeps of bit patterns, and its special values.
#include "kernels/scalar_ops.h"

#include "scalar_ops/accuracy.h"

namespace graphrun {
namespace {

using namespace accuracy;

TEST(ScalarOps, UnaryAccuracy) {
#define GRAPHRUN_SWEEP(name, Functor, ulps, result, reference)              \
  sweep_unary(#name, scalar::Functor::kUlps, scalar::Functor::apply<float>, \
              [](double x, [[maybe_unused]] double a, [[maybe_unused]] double b) -> double { return reference; });
  GRAPHRUN_UNARY_OPS(GRAPHRUN_SWEEP)
#undef GRAPHRUN_SWEEP
}

TEST(ScalarOps, BinaryAccuracy) {
#define GRAPHRUN_SWEEP(name, Functor, ulps, result, reference)               \
  sweep_binary(#name, scalar::Functor::kUlps, scalar::Functor::apply<float>, \
               [](double x, double y) -> double { return reference; });
  GRAPHRUN_BINARY_OPS(GRAPHRUN_SWEEP)
#undef GRAPHRUN_SWEEP
}

TEST(ScalarOps, Comparisons) {
  for (const float fx : kSpecial) {
    for (const float fy : kSpecial) {
      const double x = static_cast<double>(fx);
      const double y = static_cast<double>(fy);
#define GRAPHRUN_COMPARE(name, Functor, ulps, result, reference) \
  EXPECT_EQ(scalar::Functor::apply(fx, fy), (reference)) << #name << "(" << x << ", " << y << ")";
      GRAPHRUN_COMPARE_OPS(GRAPHRUN_COMPARE)
#undef GRAPHRUN_COMPARE
    }
  }
}

// Each unary op must pass NaN on; the sweeps only ask for what the reference gives.
TEST(ScalarOps, NanPropagates) {
#define GRAPHRUN_NAN(name, Functor, ...) EXPECT_TRUE(std::isnan(scalar::Functor::apply(kNan, 0.5f, 1.0f))) << #name;
  GRAPHRUN_UNARY_OPS(GRAPHRUN_NAN)
#undef GRAPHRUN_NAN
  EXPECT_TRUE(std::isnan(scalar::Minimum::apply(1.0f, kNan)));
  EXPECT_TRUE(std::isnan(scalar::Minimum::apply(kNan, 1.0f)));
  EXPECT_TRUE(std::isnan(scalar::Maximum::apply(1.0f, kNan)));
  EXPECT_TRUE(std::isnan(scalar::Maximum::apply(kNan, 1.0f)));
}

TEST(ScalarOps, KnownValues) {
  EXPECT_EQ(scalar::Round::apply(2.5f, 0.0f, 0.0f), 2.0f);
  EXPECT_EQ(scalar::Round::apply(3.5f, 0.0f, 0.0f), 4.0f);
  EXPECT_EQ(scalar::Mod::apply(-7.0f, 3.0f), 2.0f);
  EXPECT_EQ(scalar::Mod::apply(7.0f, -3.0f), -2.0f);
  EXPECT_EQ(scalar::Mod::apply(3.4e38f, 1e-45f), 0.0f);
  EXPECT_EQ(scalar::Silu::apply(-kInf, 0.0f, 0.0f), 0.0f);
  EXPECT_EQ(scalar::Gelu::apply(kInf, 0.0f, 0.0f), kInf);
  EXPECT_EQ(scalar::Clip::apply(5.0f, 0.0f, 1.0f), 1.0f);
  EXPECT_EQ(scalar::LeakyRelu::apply(-2.0f, 0.25f, 0.0f), -0.5f);
  EXPECT_TRUE(scalar::LogicalAnd::apply(true, true));
  EXPECT_FALSE(scalar::LogicalNot::apply(true, true));
}

}  // namespace
}  // namespace graphrun
