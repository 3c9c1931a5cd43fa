// sum, max, min, prod, logsumexp: every choice of axes, with and without keepdims, over rows and within them; and the
// positions argmax and argmin.
#include <cmath>

#include "conformance/samples.h"

namespace graphrun::test::samples {
namespace {

using Axes = std::vector<std::int64_t>;

// Distances exceed the steps of finite differences, so extrema do not change; no value is zero.
const std::vector<double> kApart = {0.7,  -1.3, 1.9, 0.4, -0.6, 1.1, -1.8, 1.5, 0.9, -0.3, 1.7, -1.1,
                                    -1.5, 0.5,  1.3, 2.1, -0.8, 0.3, -2.0, 0.6, 1.2, -0.4, 1.0, -0.9};

// Error bounds for n terms below 2 in any order of summation; in practice far less.
Tolerance tolerance(const std::string& op, const TensorType& x) {
  const double n = static_cast<double>(x.shape.elements() + 1);
  const double unit = x.dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  if (op == "sum") return {0, 8 * n * unit};              // n roundings of sums below 2n; n^2 is never reached
  if (op == "prod") return {0, 4 * n * unit};             // n roundings of products near 1
  if (op == "logsumexp") return {0, (2 * n + 8) * unit};  // the logarithm of a sum with an error of 2n units
  return {};                                              // extrema are selected, not computed
}

Sample reduction(const std::string& op, std::string name, TensorType x, Axes axes = {}, bool keepdims = false) {
  Sample s{.op = op, .name = std::move(name), .operands = {{x}}};
  s.attributes = {{"axes", std::move(axes)}, {"keepdims", keepdims}};
  s.tolerance = tolerance(op, x);
  if (op == "prod") {  // keep the product of n factors in the range of floats
    const double spread = std::fmin(0.5, 2 / std::sqrt(static_cast<double>(x.shape.elements() + 1)));
    s.operands[0].low = 1 - spread;
    s.operands[0].high = 1 + spread;
  }
  return s;
}

Sample of(Sample sample, std::vector<double> values, std::vector<double> expected = {}) {
  sample.operands[0].values = std::move(values);
  sample.expected = std::move(expected);
  return sample;
}

// Result of a reduction over no elements.
double identity(const std::string& op) {
  return op == "prod" ? 1 : op == "min" ? kInf : op == "sum" ? 0 : -kInf;
}

std::vector<Sample> shapes(const std::string& op) {
  const auto make = [&](std::string name, TensorType x, Axes axes = {}, bool keepdims = false) {
    return reduction(op, std::move(name), x, std::move(axes), keepdims);
  };
  std::vector<Sample> list = {make("scalar", f32({})),
                              make("all", f32({5, 7})),
                              make("all_kept", f32({5, 7}), {}, true),
                              make("axis_0", f32({5, 7}), {0}),
                              make("axis_0_kept", f32({5, 7}), {0}, true),
                              make("last_axis", f32({5, 7}), {-1}),
                              make("last_axis_kept", f32({5, 7}), {-1}, true),
                              make("middle_axis", f32({3, 5, 7}), {1}),
                              make("outer_axes", f32({3, 5, 7}), {0, 2}),
                              make("outer_axes_kept", f32({3, 5, 7}), {2, 0}, true),
                              make("last_two_axes", f32({3, 5, 7}), {1, 2}),
                              make("axis_of_one", f32({4, 1, 3}), {1}),
                              make("alternate_axes", f32({2, 3, 2, 3, 2, 3}), {1, 3, 5}),
                              make("rank_eight", f32({2, 1, 2, 3, 1, 2, 1, 2}), {0, 3, 7}),
                              make("large", f32({10007})),
                              make("large_axis_0", f32({1031, 37}), {0}),
                              make("large_last_axis", f32({37, 1031}), {1}),
                              make("large_tall", f32({5003, 1}), {0}),
                              make("empty_result", f32({0, 3}), {1}),
                              make("f64", typed(DType::f64, {5, 7}), {0}),
                              make("rows_always_full", rows_f32({1, 7}), {0}),
                              batch_of(3, make("partial_rows_all", rows_f32({5, 7}))),
                              batch_of(3, make("partial_rows_axis_0", rows_f32({5, 7}), {0})),
                              batch_of(3, make("partial_rows_axis_0_kept", rows_f32({5, 7}), {0}, true)),
                              batch_of(3, make("partial_rows_outer_axes", rows_f32({5, 2, 3}), {0, 2})),
                              batch_of(3, make("partial_rows_stay", rows_f32({5, 7}), {1})),
                              batch_of(3, make("partial_rows_stay_kept", rows_f32({5, 7}), {1}, true)),
                              batch_of(3, make("partial_rows_rank_three", rows_f32({5, 2, 3}), {2})),
                              batch_of(3, make("partial_rows_middle_axis", rows_f32({5, 2, 3}), {1})),
                              batch_of(2, make("partial_double_rows", rows_f32({10, 3}, 2), {0})),
                              batch_of(2, make("partial_double_rows_stay", rows_f32({10, 3}, 2), {1})),
                              batch_of(2, make("row_vector", rows_f32({5}))),
                              batch_of(5, make("full_rows", rows_f32({5, 7}), {0})),
                              batch_of(0, make("no_rows_stay", rows_f32({5, 7}), {1})),
                              batch_of(701, make("large_partial_rows", rows_f32({1000, 5}), {0}), 1000)};
  const double none = identity(op);
  list.push_back(of(make("empty_all", f32({0, 3})), {1}, {none}));
  list.push_back(of(make("empty_axis", f32({0, 3}), {0}), {1}, {none, none, none}));
  list.push_back(of(make("empty_last_axis", f32({2, 0}), {1}), {1}, {none, none}));
  list.push_back(of(batch_of(0, make("no_rows", rows_f32({5, 3}), {0})), {1}, {none, none, none}));
  for (Sample& gradient : std::vector<Sample>{
           make("gradient_all", f32({3, 4})), make("gradient_axis_0", f32({3, 4}), {0}),
           make("gradient_last_axis_kept", f32({3, 4}), {1}, true), make("gradient_middle_axis", f32({2, 3, 4}), {1}),
           make("gradient_outer_axes", f32({2, 3, 4}), {0, 2}),
           batch_of(3, make("gradient_over_rows", rows_f32({5, 2}), {0})),
           batch_of(3, make("gradient_beside_rows", rows_f32({5, 2}), {1}))}) {
    list.push_back(differentiable(of(std::move(gradient), kApart)));
  }
  return list;
}

// Two lines of three, reduced along the last axis.
void add_lines(std::vector<Sample>& list) {
  const auto lines = [&](const std::string& op, std::string name, std::vector<double> x, std::vector<double> y) {
    list.push_back(of(reduction(op, std::move(name), f32({2, 3}), {1}), std::move(x), std::move(y)));
  };
  lines("sum", "exact", {1, 2, 3, 4, 5, 6}, {6, 15});
  lines("sum", "nan", {1, kNan, 3, 4, 5, 6}, {kNan, 15});
  lines("sum", "infinite", {1, kInf, 3, kInf, 5, -kInf}, {kInf, kNan});

  lines("max", "exact", {1, 3, -2, -4, -5, -6}, {3, -4});
  lines("max", "ties", {2, 1, 2, 7, 7, 7}, {2, 7});
  lines("max", "nan_first_or_last", {kNan, 3, 9, 4, 5, kNan}, {kNan, kNan});
  lines("max", "nan_beside_infinity", {kInf, kNan, 1, kNan, kInf, 1}, {kNan, kNan});
  lines("max", "infinite", {-kInf, -kInf, -kInf, 1, kInf, -kInf}, {-kInf, kInf});
  lines("min", "exact", {1, 3, -2, 4, 5, 6}, {-2, 4});
  lines("min", "ties", {2, 3, 2, 7, 7, 7}, {2, 7});
  lines("min", "nan_first_or_last", {kNan, 3, 9, 4, 5, kNan}, {kNan, kNan});
  lines("min", "nan_beside_infinity", {-kInf, kNan, 1, kNan, -kInf, 1}, {kNan, kNan});
  lines("min", "infinite", {kInf, kInf, kInf, 1, kInf, -kInf}, {kInf, -kInf});

  lines("prod", "exact", {1, 2, 3, -4, 5, 6}, {6, -120});
  lines("prod", "zeros", {0, 2, 3, 0, 5, 0}, {0, 0});
  lines("prod", "nan", {1, kNan, 3, 0, kNan, 6}, {kNan, kNan});
  lines("prod", "infinite", {1, -kInf, 3, 0, kInf, 6}, {-kInf, kNan});

  const double ln2 = std::log(2.0);
  lines("logsumexp", "exact", {0, 0, -kInf, 5, -kInf, -kInf}, {ln2, 5});
  lines("logsumexp", "without_overflow", {1000, 1000, -1000, -1000, -1000, -3000}, {1000 + ln2, -1000 + ln2});
  lines("logsumexp", "infinite", {-kInf, -kInf, -kInf, 1, kInf, -kInf}, {-kInf, kInf});
  lines("logsumexp", "nan", {1, kNan, 3, kInf, kNan, -kInf}, {kNan, kNan});

  // Terms that a plain sequential float sum would lose.
  Sample unequal = reduction("sum", "unequal_sizes", f32({4097}));
  unequal.operands[0].values = {0x1p12};
  unequal.operands[0].values.resize(4097, 0x1p-10);
  unequal.tolerance = {0, 0x1p-20};
  list.push_back(unequal);

  // If there are zeros, the product of the others is not y / x.
  const auto zeros = [&](std::string name, TensorType type, Axes axes, std::vector<double> x) {
    list.push_back(differentiable(of(reduction("prod", std::move(name), type, std::move(axes)), std::move(x))));
  };
  zeros("gradient_one_zero", f32({2, 3}), {1}, {0, 2, 3, -1.5, 0.5, 2});
  zeros("gradient_two_zeros", f32({2, 4}), {1}, {0, 2, 0, 3, -1.5, 0.5, 0, 2});
  list.back().first_only = "what two zeros are to each other is left out of the gradient's own gradient";
  zeros("gradient_only_zeros", f32({3}), {}, {0});
  list.push_back(differentiable(
      batch_of(3, of(reduction("prod", "gradient_zero_over_rows", rows_f32({5, 2}), {0}), {0, 2, 3, -1.5, 0.5, 2}))));
}

Sample position(const std::string& op, std::string name, TensorType x, std::int64_t axis = -1) {
  return {.op = op, .name = std::move(name), .operands = {{x}}, .attributes = {{"axis", axis}}};
}

void add_positions(std::vector<Sample>& list, const std::string& op) {
  const auto make = [&](std::string name, TensorType x, std::int64_t axis = -1) {
    return position(op, std::move(name), x, axis);
  };
  for (Sample& sample :
       std::vector<Sample>{make("vector", f32({7})), make("odd", f32({7, 13})), make("axis_0", f32({7, 13}), 0),
                           make("middle_axis", f32({3, 5, 7}), 1), make("axis_of_one", f32({4, 1, 3}), 1),
                           make("size_one_axes", f32({1, 5, 1}), -2), make("large_last_axis", f32({37, 1031})),
                           make("large_axis_0", f32({1031, 37}), 0), make("empty_result", f32({0, 3})),
                           make("f64", typed(DType::f64, {5, 7})), batch_of(5, make("full_rows", rows_f32({5, 7}))),
                           batch_of(3, make("partial_rows", rows_f32({5, 7}))),
                           batch_of(3, make("partial_rows_middle_axis", rows_f32({5, 2, 3}), 1)),
                           batch_of(2, make("partial_double_rows", rows_f32({10, 3}, 2))),
                           batch_of(0, make("no_rows", rows_f32({5, 7})))}) {
    list.push_back(std::move(sample));
  }
  // Six lines of four; ties go to the first, and the first NaN takes precedence.
  const bool largest = op == "argmax";
  Sample exact = make("exact", f32({6, 4}));
  exact.operands[0].values = {1,    3, -2,   3,     /**/ 7,    7, 7,    7, /**/ -1, kNan,  kInf, kNan,
                              kInf, 2, kInf, -kInf, /**/ -0.0, 0, -0.0, 0, /**/ 5,  -kInf, 4,    -kInf};
  exact.expected = largest ? std::vector<double>{1, 0, 1, 0, 0, 0} : std::vector<double>{2, 0, 1, 3, 0, 1};
  list.push_back(exact);
  Sample ties = make("ties_over_axis_0", f32({3, 4}), 0);
  ties.operands[0].values = {1, 2, 3, 3, /**/ 1, 3, 2, 3, /**/ 2, 1, 3, 3};
  ties.expected = largest ? std::vector<double>{2, 1, 0, 0} : std::vector<double>{0, 2, 1, 0};
  list.push_back(ties);
}

}  // namespace

std::vector<Sample> reductions() {
  std::vector<Sample> list;
  for (const char* op : {"sum", "max", "min", "prod", "logsumexp"}) {
    for (Sample& sample : shapes(op)) list.push_back(std::move(sample));
  }
  add_lines(list);
  for (const char* op : {"argmax", "argmin"}) add_positions(list, op);
  return list;
}

}  // namespace graphrun::test::samples
