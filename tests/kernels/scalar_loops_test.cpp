// The vector loops of scalar ops against their functors.
#include "kernels/cpu/batch/families.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <string>

#include "graphrun/params.h"
#include "kernels/calls.h"
#include "kernels/scalar_ops.h"

namespace graphrun {
namespace {

using test::Call;
using test::type_of;

// The vector code is the scalar functor lane by lane: any bit pattern gives the same bits (any NaN is a NaN).
TEST(ScalarLoops, LanesGiveTheBitsOfTheFunctor) {
  constexpr std::int64_t kCount = 100003;
  std::mt19937 random(2);
  Call call;
  call.params = ScalarParams{-0.5, 0.75};
  for (int i = 0; i < 2; ++i) {
    HostTensor& x = call.operand(type_of({kCount}), random);
    for (float& v : x.elements<float>()) v = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  }
  call.out_type = type_of({kCount});
  const auto x = call.operands[0].elements<float>();
  const auto y = call.operands[1].elements<float>();
  const auto expect_bits = [&](const std::string& op, auto apply) {
    for (const Isa isa : available_isas()) {
      const HostTensor out = call.run(cpu_kernel(find_op(op).value(), isa));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float want = apply(x[i], y[i]);
        const float got = out.elements<float>()[i];
        if (want != want && got != got) continue;
        ASSERT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(want))
            << op << "(" << x[i] << ", " << y[i] << ") on " << name_of(isa);
      }
    }
  };
#define GRAPHRUN_UNARY_BITS(name, Functor, ...) \
  expect_bits(#name, [](float v, float) { return scalar::Functor::apply(v, -0.5f, 0.75f); });
#define GRAPHRUN_BINARY_BITS(name, Functor, ...) \
  expect_bits(#name, [](float v, float w) { return scalar::Functor::apply(v, w); });
  GRAPHRUN_UNARY_OPS(GRAPHRUN_UNARY_BITS)
  GRAPHRUN_BINARY_OPS(GRAPHRUN_BINARY_BITS)
}

}  // namespace
}  // namespace graphrun
