// Unary scalar ops: the same shapes for all, with ranges per op. scalar_op_list.h defines the tolerance.
#include <cmath>

#include "conformance/samples.h"

namespace graphrun::test::samples {
namespace {

struct Unary {
  std::string op;
  double low, high;  // domain of the op
  AttrList attributes = {};
  std::vector<double> smooth = {};  // for finite differences: away from kinks and edges; empty: the range itself
  std::string label = {};           // distinguishes samples with other attributes
  double more = 0;                  // additional ulps for attributes that kernels must round to float
};

const std::vector<double> kAwayFromZero = {-1.7, 0.3, 1.2, -0.4, 2.1, -0.9, 0.75};
const std::vector<double> kAwayFromSteps = {-1.7, 0.3, 1.2, -0.4, 2.2, -2.3};

std::vector<Unary> unary_table() {
  return {{"neg", -5, 5},
          {"abs", -5, 5, {}, kAwayFromZero},
          {"sign", -2, 2, {}, kAwayFromZero},
          {"square", -5, 5},
          {"sqrt", 0, 9, {}, {0.3, 1.5, 4.2, 2.0, 0.9}},
          {"rsqrt", 0.01, 9, {}, {0.3, 1.5, 4.2, 2.0, 0.9}},
          {"reciprocal", -4, 4, {}, kAwayFromZero},
          {"exp", -20, 20, {}, kAwayFromZero},
          {"expm1", -5, 5},
          {"log", 0.001, 50, {}, {0.3, 1.5, 4.2, 2.0, 0.9}},
          {"log1p", -0.99, 20, {}, {-0.6, -0.2, 0.4, 1.5, 4.2}},
          {"sin", -30, 30},
          {"cos", -30, 30},
          {"tan", -30, 30, {}, {-1.1, -0.4, 0.2, 0.7, 1.2}},
          {"tanh", -6, 6, {}, kAwayFromZero},
          {"sigmoid", -12, 12, {}, kAwayFromZero},
          {"softplus", -12, 12, {}, kAwayFromZero},
          {"relu", -3, 3, {}, kAwayFromZero},
          {"leaky_relu", -3, 3, {}, kAwayFromZero, "", 1},
          {"leaky_relu", -3, 3, {{"slope", 0.25}}, kAwayFromZero, "slope_"},
          {"elu", -6, 3, {}, kAwayFromZero},
          {"elu", -6, 3, {{"alpha", 0.7}}, kAwayFromZero, "alpha_", 1},
          {"selu", -6, 3, {}, kAwayFromZero},
          {"gelu", -6, 6, {}, kAwayFromZero},
          {"gelu_tanh", -6, 6, {}, kAwayFromZero},
          {"silu", -12, 12, {}, kAwayFromZero},
          {"erf", -3, 3, {}, kAwayFromZero},
          {"floor", -5, 5, {}, kAwayFromSteps},
          {"ceil", -5, 5, {}, kAwayFromSteps},
          {"round", -5, 5, {}, kAwayFromSteps},
          {"clip", -3, 3, {{"low", -0.5}, {"high", 1.25}}, {-1.7, 0.3, 1.1, -0.4, 2.1, -0.9}}};
}

// Edge cases of the float format and of the functions. All are floats, so ref gets the same operand.
const std::vector<double> kSpecialValues = {kNan,
                                            kInf,
                                            -kInf,
                                            0.0,
                                            -0.0,
                                            1.0,
                                            -1.0,
                                            0.5,
                                            -0.5,
                                            1.5,
                                            2.5,
                                            0x1p-126,
                                            -0x1p-126,
                                            0x1p-140,
                                            -0x1p-140,
                                            0x1p-20,
                                            -0x1p-20,
                                            88.0,
                                            -88.0,
                                            100.0,
                                            -100.0,
                                            0x1p24,
                                            -0x1p24,
                                            0x1p100,
                                            -0x1p100,
                                            0x1.fffffep+127,
                                            -0x1.fffffep+127,
                                            8388607.5,
                                            0x1.8p+1,
                                            -0x1.8p+1};

// Examples whose result follows from the definition.
std::vector<Sample> exact_unary() {
  const auto sample = [](std::string op, std::vector<double> x, std::vector<double> y, AttrList attributes = {}) {
    Sample s{.op = std::move(op), .name = "exact", .operands = {}, .attributes = std::move(attributes)};
    s.operands = {{f32({static_cast<std::int64_t>(x.size())}), 0, 0, x}};
    s.tolerance = {1, 0};
    s.expected = std::move(y);
    return s;
  };
  return {sample("neg", {1, -2.5, 0}, {-1, 2.5, 0}),
          sample("abs", {1, -2.5, 0}, {1, 2.5, 0}),
          sample("sign", {3, -2.5, 0}, {1, -1, 0}),
          sample("square", {3, -2.5, 0}, {9, 6.25, 0}),
          sample("sqrt", {0, 4, 6.25}, {0, 2, 2.5}),
          sample("rsqrt", {4, 0.0625}, {0.5, 4}),
          sample("reciprocal", {4, -0.5}, {0.25, -2}),
          sample("exp", {0, 1, -kInf}, {1, 2.718281828459045, 0}),
          sample("expm1", {0, 1, 0x1p-40}, {0, 1.718281828459045, 0x1p-40}),
          sample("log", {1, 2, 0}, {0, 0.6931471805599453, -kInf}),
          sample("log1p", {0, 1, -1, 0x1p-40}, {0, 0.6931471805599453, -kInf, 0x1p-40}),
          sample("sin", {0, 1}, {0, 0.8414709848078965}),
          sample("cos", {0, 1}, {1, 0.5403023058681398}),
          sample("tan", {0, 1}, {0, 1.557407724654902}),
          sample("tanh", {0, 1, -20}, {0, 0.7615941559557649, -1}),
          sample("sigmoid", {0, 1, -kInf, kInf}, {0.5, 0.7310585786300049, 0, 1}),
          sample("softplus", {0, 1, -kInf, 200}, {0.6931471805599453, 1.3132616875182228, 0, 200}),
          sample("relu", {-1, 0, 2.5}, {0, 0, 2.5}),
          sample("leaky_relu", {-1, 0, 2.5}, {-0.125, 0, 2.5}, {{"slope", 0.125}}),
          sample("elu", {-1, 0, 2.5}, {-1.2642411176571153, 0, 2.5}, {{"alpha", 2.0}}),
          sample("selu", {-1, 0, 1}, {-1.1113307378125625, 0, 1.0507009873554805}),
          sample("gelu", {-1, 0, 1}, {-0.15865525393145707, 0, 0.8413447460685429}),
          sample("gelu_tanh", {-1, 0, 1}, {-0.15880800939172324, 0, 0.8411919906082768}),
          sample("silu", {-1, 0, 1}, {-0.2689414213699951, 0, 0.7310585786300049}),
          sample("erf", {0, 1, -kInf}, {0, 0.8427007929497149, -1}),
          sample("floor", {-1.5, 1.5, 2}, {-2, 1, 2}),
          sample("ceil", {-1.5, 1.5, 2}, {-1, 2, 2}),
          sample("round", {-1.5, 0.5, 1.5, 2.5, 2.75}, {-2, 0, 2, 2, 3}),
          sample("clip", {-3, 0.5, 3, kInf, -kInf}, {-1, 0.5, 2, 2, -1}, {{"low", -1.0}, {"high", 2.0}})};
}

}  // namespace

std::vector<Sample> unary() {
  std::vector<Sample> list = exact_unary();
  for (const Unary& row : unary_table()) {
    const auto sample = [&](std::string_view name, TensorType type, std::vector<double> values = {}) {
      Sample s{.op = row.op, .name = row.label + std::string(name), .operands = {}, .attributes = row.attributes};
      s.operands = {{type, row.low, row.high, std::move(values)}};
      s.tolerance = {scalar_ulps(row.op) + row.more, 0};
      return s;
    };
    list.push_back(sample("scalar", f32({})));
    list.push_back(sample("odd", f32({7, 13})));
    list.push_back(sample("size_one_axes", f32({1, 5, 1})));
    list.push_back(sample("large", f32({1037})));
    list.push_back(sample("empty", f32({3, 0})));
    list.push_back(sample("f64", typed(DType::f64, {3, 7})));
    list.push_back(sample("rows_always_full", rows_f32({1, 3})));
    list.push_back(batch_of(5, sample("full_rows", rows_f32({5, 3}))));
    list.push_back(batch_of(3, sample("partial_rows", rows_f32({5, 3}))));
    list.push_back(batch_of(2, sample("partial_double_rows", rows_f32({10, 3}, 2))));
    list.push_back(batch_of(300, sample("partial_rows_large", rows_f32({400, 3})), 400));
    list.push_back(batch_of(0, sample("no_rows", rows_f32({5, 3}))));
    Sample special = sample("special", f32({static_cast<std::int64_t>(kSpecialValues.size())}), kSpecialValues);
    special.nan_spreads = true;
    list.push_back(special);
    // The same values again, at an offset that is not a multiple of any vector width.
    special =
        sample("special_repeated", f32({static_cast<std::int64_t>(3 * kSpecialValues.size() + 1)}), kSpecialValues);
    special.nan_spreads = true;
    list.push_back(special);
    list.push_back(differentiable(sample("gradient", f32({3, 4}), row.smooth)));
    list.push_back(differentiable(batch_of(3, sample("gradient_partial_rows", rows_f32({5, 2}), row.smooth))));
  }
  return list;
}

}  // namespace graphrun::test::samples
