// The accuracy of the functions of `--math=fast`, on a host: with approximations that are as far off as the PTX ISA
// allows, every op keeps its bound; what is exact stays so. On a device: device/fast_functions_test.cpp.
#include "kernels/cuda/tile/functions.h"

#include <set>

#include "scalar_ops/accuracy.h"

namespace graphrun {
namespace {

using namespace accuracy;
namespace tile = cuda::tile;
using tile::fast::Float;

template <class Functor>
float unary(float x, float a, float b) {
  return static_cast<float>(Functor::template apply<Float>(x, a, b));
}
template <class Functor>
float binary(float x, float y) {
  return static_cast<float>(Functor::template apply<Float>(x, y));
}

// The nearest floats, the ends of what is allowed, and anything between.
const tile::Errors kErrors[] = {{}, {1, 1}, {-1, -1}, {-1, 1, 1}, {-1, 1, 2}};

class FastFunctions : public ::testing::TestWithParam<tile::Errors> {
 protected:
  void SetUp() override { tile::errors = GetParam(); }
  void TearDown() override { tile::errors = {}; }
};

TEST_P(FastFunctions, UnaryAccuracy) {
#define GRAPHRUN_SWEEP(name, Functor, ulps, result, reference)                                                       \
  RecordProperty(                                                                                                    \
      #name, std::to_string(sweep_unary(                                                                             \
                 #name, tile::fast::kUlps<scalar::Functor>, unary<scalar::Functor>,                                  \
                 [](double x, [[maybe_unused]] double a, [[maybe_unused]] double b) -> double { return reference; }, \
                 16381)));
  GRAPHRUN_UNARY_OPS(GRAPHRUN_SWEEP)
#undef GRAPHRUN_SWEEP
}

TEST_P(FastFunctions, BinaryAccuracy) {
#define GRAPHRUN_SWEEP(name, Functor, ulps, result, reference)                                                   \
  RecordProperty(#name,                                                                                          \
                 std::to_string(sweep_binary(#name, tile::fast::kUlps<scalar::Functor>, binary<scalar::Functor>, \
                                             [](double x, double y) -> double { return reference; })));
  GRAPHRUN_BINARY_OPS(GRAPHRUN_SWEEP)
#undef GRAPHRUN_SWEEP
}

TEST_P(FastFunctions, NanPropagates) {
#define GRAPHRUN_NAN(name, Functor, ...) EXPECT_TRUE(std::isnan(unary<scalar::Functor>(kNan, 0.5f, 1.0f))) << #name;
  GRAPHRUN_UNARY_OPS(GRAPHRUN_NAN)
#undef GRAPHRUN_NAN
}

INSTANTIATE_TEST_SUITE_P(Errors, FastFunctions, ::testing::ValuesIn(kErrors));

TEST(FastFunctionsExact, OpsThatHaveNoApproximationHaveTheSameBits) {
  tile::errors = {-1, 1, 3};
  const std::set<std::string> approximate = {
#define GRAPHRUN_NAME(Functor, ulps) #Functor,
      GRAPHRUN_FAST_BOUNDS(GRAPHRUN_NAME)
#undef GRAPHRUN_NAME
  };
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const auto y = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const auto same = [](float a, float b) {
      return std::isnan(a) ? std::isnan(b) : scalar::bits(a) == scalar::bits(b);
    };
#define GRAPHRUN_UNARY(name, Functor, ...)                                                                           \
  if (!approximate.contains(#Functor)) {                                                                             \
    EXPECT_TRUE(same(unary<scalar::Functor>(x, -0.3f, 1.7f), scalar::Functor::apply(x, -0.3f, 1.7f))) << #name << x; \
  }
    GRAPHRUN_UNARY_OPS(GRAPHRUN_UNARY)
#undef GRAPHRUN_UNARY
#define GRAPHRUN_BINARY(name, Functor, ...)                                                                   \
  if (!approximate.contains(#Functor)) {                                                                      \
    EXPECT_TRUE(same(binary<scalar::Functor>(x, y), scalar::Functor::apply(x, y))) << #name << x << ' ' << y; \
  }
    GRAPHRUN_BINARY_OPS(GRAPHRUN_BINARY)
#undef GRAPHRUN_BINARY
#define GRAPHRUN_COMPARE(name, Functor, ...) \
  EXPECT_EQ(scalar::Functor::apply(Float(x), Float(y)), scalar::Functor::apply(x, y)) << #name;
    GRAPHRUN_COMPARE_OPS(GRAPHRUN_COMPARE)
#undef GRAPHRUN_COMPARE
  }
  tile::errors = {};
}

}  // namespace
}  // namespace graphrun
