// The loops for f64: functions within 2 ulp of long double, and the same bits on every instruction set and for any
// number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>

#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/op_traits.h"
#include "graphrun/params.h"
#include "graphrun/scalar_op.h"
#include "kernels/calls.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/threads/parallel.h"
#include "kernels/ref.h"

namespace graphrun {
namespace {

TensorType wide_type(Shape shape) {
  return {DType::f64, shape, 0};
}

// Numbers in double with all 53 bits.
void fill_wide(HostTensor& tensor, std::mt19937_64& random, double low, double high) {
  std::uniform_real_distribution<double> real(low, high);
  for (double& x : tensor.elements<double>()) x = real(random);
}

// Whether the elements have the same bits; any NaN is a NaN.
bool same_numbers(const HostTensor& a, const HostTensor& b) {
  if (a.dtype() != DType::f64) return test::same_bits(a, b);
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x == x ? x : 0.0); };
  return std::ranges::equal(a.elements<double>(), b.elements<double>(), {}, bits, bits);
}

// Runs the op on every instruction set, with 1, 2 and 3 threads; all give the same bits, which are returned.
HostTensor run_everywhere(test::Call& call, Op op) {
  std::vector<TensorType> types = call.types;
  call.workspace = cpu_workspace(op, call.params, types, call.out_type);
  const HostTensor first = call.run(cpu_kernel(op, Isa::plain));
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 2, 3}) {
      cpu::Pool pool(threads);
      call.pool = &pool;
      EXPECT_TRUE(same_numbers(call.run(cpu_kernel(op, isa)), first))
          << name_of(op) << " on " << name_of(isa) << " with " << threads << " threads";
      call.pool = nullptr;
    }
  }
  return first;
}

struct WideFunction {
  Op op;
  double low, high;
  long double (*exact)(long double);
};

using Long = long double;
constexpr WideFunction kWideFunctions[] = {
    {scalar_op::exp, -745, 709.7, [](Long x) { return std::exp(x); }},
    {scalar_op::exp, -1, 1, [](Long x) { return std::exp(x); }},
    {scalar_op::expm1, -50, 700, [](Long x) { return std::expm1(x); }},
    {scalar_op::expm1, -1, 1, [](Long x) { return std::expm1(x); }},
    {scalar_op::log, 0, 1e3, [](Long x) { return std::log(x); }},
    {scalar_op::log, 0.5, 2, [](Long x) { return std::log(x); }},
    {scalar_op::log1p, -1, 1e3, [](Long x) { return std::log1p(x); }},
    {scalar_op::log1p, -1e-3, 1e-3, [](Long x) { return std::log1p(x); }},
    {scalar_op::sin, -1e3, 1e3, [](Long x) { return std::sin(x); }},
    {scalar_op::sin, -1e9, 1e9, [](Long x) { return std::sin(x); }},
    {scalar_op::cos, -1e3, 1e3, [](Long x) { return std::cos(x); }},
    {scalar_op::cos, -1e9, 1e9, [](Long x) { return std::cos(x); }},
    {scalar_op::tan, -1e3, 1e3, [](Long x) { return std::tan(x); }},
    {scalar_op::tan, -1.6, 1.6, [](Long x) { return std::tan(x); }},
    {scalar_op::tanh, -20, 20, [](Long x) { return std::tanh(x); }},
    {scalar_op::tanh, -1e-2, 1e-2, [](Long x) { return std::tanh(x); }},
    {scalar_op::sigmoid, -740, 40, [](Long x) { return 1 / (1 + std::exp(-x)); }},
    {scalar_op::sigmoid, -4, 4, [](Long x) { return 1 / (1 + std::exp(-x)); }},
    {scalar_op::softplus, -700, 40, [](Long x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }},
    {scalar_op::softplus, -4, 4, [](Long x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }},
    {scalar_op::silu, -700, 40, [](Long x) { return x / (1 + std::exp(-x)); }},
    {scalar_op::erf, -6.5, 6.5, [](Long x) { return std::erf(x); }},
    {scalar_op::erf, -1.2, 1.2, [](Long x) { return std::erf(x); }},
    {scalar_op::gelu, -37, 10, [](Long x) { return x * std::erfc(-x / std::sqrt(Long{2})) / 2; }},
    {scalar_op::gelu, -1.5, 1.5, [](Long x) { return x * std::erfc(-x / std::sqrt(Long{2})) / 2; }},
    {scalar_op::selu, -40, 4,
     [](Long x) { return 1.0507009873554804934L * (x > 0 ? x : 1.6732632423543772848L * std::expm1(x)); }},
};

double largest_ulps(const HostTensor& x, const HostTensor& y, long double (*exact)(long double)) {
  double worst = 0;
  for (std::size_t i = 0; i < x.elements<double>().size(); ++i) {
    const long double wanted = exact(x.elements<double>()[i]);
    const double nearest = static_cast<double>(std::fabs(wanted)), above = std::nextafter(nearest, INFINITY);
    const long double error = std::fabs(static_cast<long double>(y.elements<double>()[i]) - wanted);
    worst = std::max(worst, static_cast<double>(error / static_cast<long double>(above - nearest)));
  }
  return worst;
}

TEST(DoubleLoops, FunctionsAreWithinTwoUlp) {
  std::mt19937_64 random(7);
  std::mt19937 any(7);
  for (const WideFunction& function : kWideFunctions) {
    test::Call call;
    fill_wide(call.operand(wide_type({20011}), any), random, function.low, function.high);
    call.out_type = wide_type({20011});
    const HostTensor y = run_everywhere(call, function.op);
    EXPECT_LE(largest_ulps(call.operands[0], y, function.exact), 2)
        << name_of(function.op) << " from " << function.low << " to " << function.high;
  }
}

TEST(DoubleLoops, PowersAreWithinTwoUlp) {
  std::mt19937_64 random(11);
  std::mt19937 any(11);
  for (const auto& [low, high, exponent] : {std::tuple{0.0, 2.0, 700.0}, {0.999, 1.001, 7e5}, {0.0, 1e300, 1.02}}) {
    test::Call call;
    fill_wide(call.operand(wide_type({20011}), any), random, low, high);
    fill_wide(call.operand(wide_type({20011}), any), random, -exponent, exponent);
    call.out_type = wide_type({20011});
    const HostTensor y = run_everywhere(call, scalar_op::pow);
    for (std::size_t i = 0; i < 20011; ++i) {
      const Long wanted =
          std::pow(static_cast<Long>(test::element(call.operands[0], i)), test::element(call.operands[1], i));
      const double nearest = static_cast<double>(wanted);
      if (nearest < 0x1p-1022 || nearest > 0x1p1023) continue;
      ASSERT_LE(std::fabs(static_cast<Long>(test::element(y, i)) - wanted),
                2 * (std::nextafter(nearest, INFINITY) - nearest))
          << test::element(call.operands[0], i) << "^" << test::element(call.operands[1], i);
    }
  }
}

// 1 - y * y cancels for y near 1: both kernels keep its digits.
TEST(DoubleLoops, GradientsOfSaturatedUnitsHaveAllDigits) {
  std::mt19937_64 random(13);
  std::mt19937 any(13);
  test::Call call;
  HostTensor& y = call.operand(wide_type({20011}), any);
  fill_wide(y, random, 0, 45);
  for (double& value : y.elements<double>()) value = (value < 22 ? -1 : 1) * (1 - std::exp2(-value));
  fill_wide(call.operand(wide_type({20011}), any), random, -1, 1);
  call.out_type = wide_type({20011});
  const HostTensor got = run_everywhere(call, scalar_op::tanh_gradient);
  const HostTensor of_ref = call.run(ref_kernel(scalar_op::tanh_gradient));
  for (std::size_t i = 0; i < 20011; ++i) {
    const Long of_y = test::element(call.operands[0], i), gradient = test::element(call.operands[1], i);
    const Long wanted = (1 - of_y) * (1 + of_y) * gradient;
    for (const HostTensor& one : {got, of_ref})
      ASSERT_NEAR(static_cast<double>(test::element(one, i) / wanted), 1, 4e-16) << static_cast<double>(of_y);
  }
}

// Any bit pattern gives the same bits everywhere, and what ref computes: NaN, infinities and zeros included.
TEST(DoubleLoops, AgreeWithTheReferenceForAnyBits) {
  std::mt19937_64 random(8);
  std::mt19937 any(8);
  std::size_t ops = 0;
#define GRAPHRUN_OP_OF(name, ...) scalar_op::name,
  for (const Op op :
       {GRAPHRUN_BINARY_OPS(GRAPHRUN_OP_OF) GRAPHRUN_UNARY_OPS(GRAPHRUN_OP_OF) GRAPHRUN_COMPARE_OPS(GRAPHRUN_OP_OF)}) {
#undef GRAPHRUN_OP_OF
    if (!cpu_takes_f64(op)) continue;
    ++ops;
    test::Call call;
    const std::string_view letters = traits_of(op).dtypes;
    for (std::size_t i = 0; i < letters.find('>'); ++i)
      for (double& x : call.operand(wide_type({4003}), any).elements<double>())
        x = random() % 16 == 0 ? static_cast<double>(random() % 5) - 2 : std::bit_cast<double>(random());
    call.out_type = {letters.back() == 'B' ? DType::boolean : DType::f64, {4003}, 0};
    if (traits_of(op).params == params_kind<ScalarParams>) call.params = ScalarParams{-0.1, 0.7};
    const HostTensor y = run_everywhere(call, op), wanted = call.run(ref_kernel(op));
    const double tolerance = op == scalar_op::gelu ? 3e-13 : 1e-13;  // ref rounds the argument of erfc
    for (std::size_t i = 0; i < 4003; ++i) {
      const double got = test::element(y, i), want = test::element(wanted, i);
      if (want != want && got != got) continue;
      ASSERT_LE(got == want ? 0 : std::abs(got - want), tolerance * std::abs(want) + 1e-300)
          << name_of(op) << "(" << test::element(call.operands[0], i) << ")";
    }
  }
  EXPECT_GT(ops, 40U);
}

TEST(DoubleLoops, ProductsAgreeWithTheReference) {
  struct Case {
    std::int64_t m, n, k;
    bool transpose_a, transpose_b;
  };
  std::mt19937_64 random(9);
  std::mt19937 any(9);
  for (const Case& c : {Case{1, 1, 1, false, false},
                        {5, 7, 3, false, true},
                        {61, 61, 3001, true, false},
                        {61, 1, 2050, true, false},
                        {130, 20, 61, false, false},
                        {60, 200, 300, true, true},
                        {200, 150, 1030, false, false},
                        {3, 40, 1500, false, false}}) {
    test::Call call;
    call.params = MatmulParams{c.transpose_a, c.transpose_b};
    fill_wide(call.operand(wide_type(c.transpose_a ? Shape{c.k, c.m} : Shape{c.m, c.k}), any), random, -1, 1);
    fill_wide(call.operand(wide_type(c.transpose_b ? Shape{c.n, c.k} : Shape{c.k, c.n}), any), random, -1, 1);
    call.out_type = wide_type({c.m, c.n});
    const HostTensor got = run_everywhere(call, Op::matmul);
    test::expect_close(call, got, call.run(ref_kernel(Op::matmul)), 0, 1e-15 * static_cast<double>(c.k), "matmul");
  }
}

TEST(DoubleLoops, PositionsDropoutAndScatteredSumsAgreeWithTheReference) {
  std::mt19937_64 random(12);
  std::mt19937 any(12);
  for (const std::int64_t axis : {0, 1, 2}) {
    for (const Op op : {Op::argmax, Op::argmin}) {
      test::Call call;
      call.params = AxisParams{static_cast<int>(axis)};
      HostTensor& x = call.operand(wide_type({40, 9, 30}), any);
      fill_wide(x, random, -1, 1);
      for (std::size_t i = 0; i < 10000; i += 97) x.elements<double>()[i] = i % 2 == 0 ? NAN : 2.0;
      call.out_type = {DType::i32, axis == 0 ? Shape{9, 30} : axis == 1 ? Shape{40, 30} : Shape{40, 9}, 0};
      EXPECT_TRUE(test::same_bits(run_everywhere(call, op), call.run(ref_kernel(op)))) << name_of(op) << axis;
    }
  }
  for (const double rate : {0.0, 0.3}) {
    test::Call call;
    call.params = RandomParams{77, rate};
    fill_wide(call.operand(wide_type({50000}), any), random, -1, 1);
    call.operand({DType::u64, {}, 0}, any).elements<std::uint64_t>()[0] = 5;
    call.out_type = wide_type({50000});
    EXPECT_TRUE(same_numbers(run_everywhere(call, Op::dropout), call.run(ref_kernel(Op::dropout)))) << rate;
  }
  test::Call scattered;
  for (std::int32_t& row : scattered.operand({DType::i32, {3000}, 0}, any).elements<std::int32_t>())
    row = static_cast<std::int32_t>(random() % 13);
  fill_wide(scattered.operand(wide_type({3000, 19}), any), random, -1, 1);
  scattered.out_type = wide_type({12, 19});
  const HostTensor sums = run_everywhere(scattered, Op::scatter_add);
  scattered.workspace = ref_workspace(Op::scatter_add, scattered.out_type);
  test::expect_close(scattered, sums, scattered.run(ref_kernel(Op::scatter_add)), 0, 1e-13, "scatter_add");
  test::Call folded;
  folded.params = WindowParams{.axes = 1, .size = {3}, .stride = {2}, .dilation = {1}};
  fill_wide(folded.operand(wide_type({7, 10, 3, 4}), any), random, -1, 1);
  folded.out_type = wide_type({7, 21, 4});
  const HostTensor signal = run_everywhere(folded, family_op::fold);
  folded.workspace = ref_workspace(family_op::fold, folded.out_type);
  test::expect_close(folded, signal, folded.run(ref_kernel(family_op::fold)), 0, 1e-14, "fold");
}

TEST(DoubleLoops, ReductionsAgreeWithTheReference) {
  std::mt19937_64 random(10);
  std::mt19937 any(10);
  for (const Shape& shape : {Shape{7, 5}, Shape{3, 16}, Shape{20000, 20}, Shape{4, 3000}, Shape{300, 61, 2}}) {
    for (std::uint32_t axes = 1; axes < (1U << shape.rank()); ++axes) {
      for (const Op op : {Op::sum, Op::max, Op::min, Op::prod, Op::logsumexp}) {
        test::Call call;
        call.params = ReduceParams{axes};
        fill_wide(call.operand(wide_type(shape), any), random, -1, 1);
        std::vector<std::int64_t> kept;
        for (int d = 0; d < shape.rank(); ++d)
          if ((axes >> d & 1U) == 0) kept.push_back(shape[d]);
        call.out_type = wide_type(Shape(kept));
        const HostTensor got = run_everywhere(call, op);
        test::expect_close(call, got, call.run(ref_kernel(op)), 1e-12, 1e-11, std::string(name_of(op)));
      }
    }
    for (const Op op : {Op(family_op::softmax), Op(family_op::log_softmax)}) {
      test::Call call;
      call.params = AxisParams{shape.rank() - 1};
      fill_wide(call.operand(wide_type(shape), any), random, -5, 5);
      call.out_type = wide_type(shape);
      test::expect_close(call, run_everywhere(call, op), call.run(ref_kernel(op)), 1e-13, 1e-14,
                         std::string(name_of(op)));
    }
  }
  test::Call call;  // class numbers
  fill_wide(call.operand(wide_type({50, 11}), any), random, -5, 5);
  for (std::int32_t& target : call.operand({DType::i32, {50}, 0}, any).elements<std::int32_t>())
    target = static_cast<std::int32_t>(random() % 11);
  call.out_type = wide_type({50});
  test::expect_close(call, run_everywhere(call, family_op::softmax_cross_entropy),
                     call.run(ref_kernel(family_op::softmax_cross_entropy)), 1e-13, 1e-14, "softmax_cross_entropy");
}

}  // namespace
}  // namespace graphrun
