// scalar_op_list.h: the one list of scalar ops, from which all tables over them are made.
// Contract: macros only, and nothing included, so that hosts and devices read it alike. A scalar op is its row: the
// functor that all fast kernels are made of, and the meaning in double, which is all that the reference kernels see.
// Leaves to others: the functions that functors are written with (src/kernels/scalar_functions.h), gradients
// (src/graph/ops/elementwise.cpp).
#pragma once

// X(name of the op, functor, largest error in ulp, result of the functor, reference in double). The result is written
// over a value type T (one float, a vector of them, a float on a device). Half an ulp is rounded once, or exact.
// sin, cos and tan are for every finite x; tanh_gradient avoids 1 - x * x rounded twice, which has few digits near 1;
// sigmoid_gradient is for x in [0, 1], softplus_gradient for x > -87.
// clang-format off

// Ops of x and y. The first six have their numbers in op.h. The last ones are gradients in one pass: y is the gradient
// of an activation, x its value (of square and softplus: its operand).
#define GRAPHRUN_BINARY_OPS(X) \
  X(add, Add, 0.5, x + y, x + y) \
  X(sub, Sub, 0.5, x - y, x - y) \
  X(mul, Mul, 0.5, x * y, x * y) \
  X(div, Div, 0.5, x / y, x / y) \
  X(minimum, Minimum, 0.5, select((x <= y) | (x != x), x, y), x <= y || std::isnan(x) ? x : y) \
  X(maximum, Maximum, 0.5, select((x >= y) | (x != x), x, y), x >= y || std::isnan(x) ? x : y) \
  X(mod, Mod, 0.5, mod(x, y), \
    std::fmod(x, y) == 0 ? std::copysign(0.0, y) \
                         : std::fmod(x, y) + ((std::fmod(x, y) < 0) != (y < 0) && !std::isnan(x) ? y : 0)) \
  X(pow, Pow, 2, pow(x, y), std::pow(x, y)) \
  X(relu_gradient, ReluGradient, 0.5, where_positive(x, y), x > 0 ? y : 0.0) \
  X(tanh_gradient, TanhGradient, 1.5, fma(-x, x, T(1.0f)) * y, std::fma(-x, x, 1.0) * y) \
  X(sigmoid_gradient, SigmoidGradient, 2, x * (1.0f - x) * y, (1 - x) * x * y) \
  X(softplus_gradient, SoftplusGradient, 4, sigmoid(x) * y, 1 / (1 + std::exp(-x)) * y) \
  X(square_gradient, SquareGradient, 0.5, (x + x) * y, (x + x) * y)

// Ops of x.
#define GRAPHRUN_PLAIN_OPS(X) \
  X(neg, Neg, 0.5, -x, -x) \
  X(abs, Abs, 0.5, abs(x), std::fabs(x)) \
  X(sign, Sign, 0.5, select(x > 0.0f, T(1.0f), select(x < 0.0f, T(-1.0f), select(x == 0.0f, T(0.0f), x))), \
    x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? 0.0 : x) \
  X(square, Square, 0.5, x * x, x * x) \
  X(sqrt, Sqrt, 0.5, sqrt(x), std::sqrt(x)) \
  X(rsqrt, Rsqrt, 1.5, rsqrt(x), 1 / std::sqrt(x)) \
  X(reciprocal, Reciprocal, 0.5, 1.0f / x, 1 / x) \
  X(exp, Exp, 1, exp(x), std::exp(x)) \
  X(expm1, Expm1, 2, expm1(x), std::expm1(x)) \
  X(log, Log, 1, log(x), std::log(x)) \
  X(log1p, Log1p, 1.5, log1p(x), std::log1p(x)) \
  X(sin, Sin, 2, sin(x), std::sin(x)) \
  X(cos, Cos, 2, cos(x), std::cos(x)) \
  X(tan, Tan, 4, tan(x), std::tan(x)) \
  X(tanh, Tanh, 2, tanh(x), std::tanh(x)) \
  X(sigmoid, Sigmoid, 2.5, sigmoid(x), 1 / (1 + std::exp(-x))) \
  X(softplus, Softplus, 2.5, softplus(x), std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)))) \
  X(relu, Relu, 0.5, relu(x), x <= 0 ? 0.0 : x) \
  X(selu, Selu, 3, select(x > 0.0f, 1.05070099f * x, 1.7580993f * expm1(x)), \
    1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x))) \
  X(gelu, Gelu, 5.5, gelu(x), std::max(x, -1e3) * 0.5 * std::erfc(-x / 1.4142135623730951)) \
  X(gelu_tanh, GeluTanh, 3, gelu_tanh(x), \
    std::max(x, -1e3) / (1 + std::exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))) \
  X(silu, Silu, 3, silu(x), std::max(x, -1e3) / (1 + std::exp(-x))) \
  X(erf, Erf, 2, erf(x), std::erf(x)) \
  X(floor, Floor, 0.5, floor(x), std::floor(x)) \
  X(ceil, Ceil, 0.5, ceil(x), std::ceil(x)) \
  X(round, Round, 0.5, round(x), std::nearbyint(x))

// Those with attributes: up to two numbers a and b (ScalarParams).
#define GRAPHRUN_PARAMETRIC_OPS(X) \
  X(leaky_relu, LeakyRelu, 0.5, select(x > 0.0f, x, a * x), x > 0 ? x : a * x) \
  X(elu, Elu, 3, select(x > 0.0f, x, a * expm1(x)), x > 0 ? x : a * std::expm1(x)) \
  X(clip, Clip, 0.5, select(x < a, a, select(x > b, b, x)), x < a ? a : x > b ? b : x)

#define GRAPHRUN_UNARY_OPS(X) GRAPHRUN_PLAIN_OPS(X) GRAPHRUN_PARAMETRIC_OPS(X)

// Two numbers in, a boolean out.
#define GRAPHRUN_COMPARE_OPS(X) \
  X(equal, Equal, 0.5, x == y, x == y) \
  X(not_equal, NotEqual, 0.5, x != y, x != y) \
  X(less, Less, 0.5, x < y, x < y) \
  X(less_equal, LessEqual, 0.5, x <= y, x <= y) \
  X(greater, Greater, 0.5, x > y, x > y) \
  X(greater_equal, GreaterEqual, 0.5, x >= y, x >= y)

// Booleans in and out. logical_not ignores y. `where(boolean, x, y)` is the only other op on booleans: select().
#define GRAPHRUN_LOGICAL_OPS(X) \
  X(logical_and, LogicalAnd, 0.5, x & y, x != 0 && y != 0) \
  X(logical_or, LogicalOr, 0.5, x | y, x != 0 || y != 0) \
  X(logical_not, LogicalNot, 0.5, !x, x == 0)

#define GRAPHRUN_SCALAR_OPS(X) \
  GRAPHRUN_BINARY_OPS(X) GRAPHRUN_UNARY_OPS(X) GRAPHRUN_COMPARE_OPS(X) GRAPHRUN_LOGICAL_OPS(X)
// clang-format on
