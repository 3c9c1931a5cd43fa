// Binary scalar ops and where: broadcasting in every direction, rows combined with shared operands.
#include <cmath>

#include "conformance/samples.h"

namespace graphrun::test::samples {
namespace {

struct Pair {
  std::string_view name;
  TensorType x, y;
  std::int64_t capacity = 1;
  std::int64_t count = -1;
};

std::vector<Pair> shapes() {
  return {{"scalars", f32({}), f32({})},
          {"odd", f32({7, 13}), f32({7, 13})},
          {"large", f32({1037}), f32({1037})},
          {"scalar_left", f32({}), f32({4, 3})},
          {"scalar_right", f32({4, 3}), f32({})},
          {"one_element_right", f32({4, 3}), f32({1, 1})},
          {"vector_right", f32({4, 3}), f32({3})},
          {"vector_left", f32({3}), f32({4, 3})},
          {"column_right", f32({4, 3}), f32({4, 1})},
          {"column_left", f32({4, 1}), f32({4, 3})},
          {"outer", f32({4, 1}), f32({1, 3})},
          {"outer_ranks", f32({4, 1}), f32({3})},
          {"rank_three", f32({2, 1, 3}), f32({5, 1})},
          {"middle_axis", f32({2, 5, 3}), f32({2, 1, 3})},
          {"ranks_of_ones", f32({1, 1, 1}), f32({1})},
          {"rank_eight", f32({2, 1, 3, 1, 2, 1, 1, 2}), f32({3, 2, 1, 3, 1, 2})},
          {"large_scalar_right", f32({1037}), f32({})},
          {"large_vector_right", f32({33, 67}), f32({67})},
          {"large_column_right", f32({33, 67}), f32({33, 1})},
          {"large_outer", f32({41, 1}), f32({1, 37})},
          {"empty", f32({0, 3}), f32({0, 3})},
          {"empty_vector_right", f32({0, 3}), f32({3})},
          {"empty_against_one", f32({2, 0}), f32({2, 1})},
          {"f64", typed(DType::f64, {5, 3}), typed(DType::f64, {3})},
          {"rows_always_full", rows_f32({5, 3}), f32({3}), 5},
          {"rows_rows", rows_f32({5, 3}), rows_f32({5, 3}), 5, 3},
          {"rows_vector", rows_f32({5, 3}), f32({3}), 5, 3},
          {"vector_rows", f32({3}), rows_f32({5, 3}), 5, 3},
          {"rows_scalar", rows_f32({5, 3}), f32({}), 5, 3},
          {"scalar_rows", f32({}), rows_f32({5, 3}), 5, 3},
          {"rows_one_row", rows_f32({5, 3}), f32({1, 3}), 5, 3},
          {"rows_column", rows_f32({5, 3}), rows_f32({5, 1}), 5, 3},
          {"column_rows", rows_f32({5, 1}), rows_f32({5, 3}), 5, 3},
          {"column_of_rows_vector", rows_f32({5, 1}), f32({4}), 5, 3},
          {"row_vectors", rows_f32({5}), rows_f32({5}), 5, 2},
          {"row_vector_scalar", rows_f32({5}), f32({}), 5, 2},
          {"double_rows", rows_f32({10, 3}, 2), f32({1, 3}), 5, 2},
          {"rank_three_rows", rows_f32({5, 2, 3}), f32({2, 1}), 5, 4},
          {"full_rows", rows_f32({5, 3}), rows_f32({5, 3}), 5, 5},
          {"no_rows", rows_f32({5, 3}), f32({3}), 5, 0},
          {"large_rows", rows_f32({100, 37}), f32({37}), 100, 71}};
}

struct Binary {
  std::string op;
  double x_low, x_high, y_low, y_high;
  std::vector<double> x_smooth, y_smooth;
  bool nan_spreads = true;
  double largest = kInf;  // maximum |x| among the special values
};

const std::vector<double> kX = {-1.7, 0.3, 1.2, -0.4, 2.1, -0.9, 0.75};
const std::vector<double> kY = {0.8, -1.3, 0.5, 1.9, -0.6};

std::vector<Binary> binary_table() {
  return {{"add", -3, 3, -3, 3, kX, kY},
          {"sub", -3, 3, -3, 3, kX, kY},
          {"mul", -3, 3, -3, 3, kX, kY},
          {"div", -3, 3, 0.1, 3, kX, kY},
          {"mod", -9, 9, 0.5, 3, {1.3, -2.6, 4.1, 0.4, -0.7, 3.55, 2.7}, {1.1, 1.7, -0.93}},
          {"pow", 0.05, 6, -4, 4, {1.7, 0.3, 1.2, 0.4, 2.1, 0.9, 0.75}, kY, false},  // pow(NaN, 0) = 1
          {"minimum", -3, 3, -3, 3, kX, kY},
          {"maximum", -3, 3, -3, 3, kX, kY},
          {"square_gradient", -3, 3, -3, 3, kX, kY},
          {"relu_gradient", -3, 3, -3, 3, kX, kY, false},
          {"tanh_gradient", -1, 1, -3, 3, {-0.7, 0.3, 0.95, -0.4, 0.1}, kY, true, 1},
          {"sigmoid_gradient", 0, 1, -3, 3, {0.7, 0.3, 0.95, 0.04, 0.1}, kY, true, 1},
          {"softplus_gradient", -12, 12, -3, 3, kX, kY}};
}

const std::vector<double> kSpecial = {kNan, kInf,   -kInf, 0.0,      -0.0,    1.0,   -1.0,       0.5,
                                      -3.0, 1000.0, 2.0,   0x1p-130, 0x1p100, -7.25, 16777217.0, 0.3};

// All pairs of the special values.
Sample special(const Binary& row) {
  std::vector<double> x;
  std::vector<double> y;
  for (const double v : kSpecial) {
    if (std::fabs(v) > row.largest) continue;
    for (const double w : kSpecial) {
      x.push_back(v);
      y.push_back(w);
    }
  }
  const TensorType type = f32({static_cast<std::int64_t>(x.size())});
  return {.op = row.op,
          .name = "special",
          .operands = {{type, 0, 0, x}, {type, 0, 0, y}},
          .tolerance = {scalar_ulps(row.op), 0},
          .nan_spreads = row.nan_spreads};
}

std::vector<Sample> exact_binary() {
  const auto sample = [](std::string op, std::vector<double> x, std::vector<double> y, std::vector<double> expected) {
    const TensorType type = f32({static_cast<std::int64_t>(x.size())});
    return Sample{.op = std::move(op),
                  .name = "exact",
                  .operands = {{type, 0, 0, x}, {type, 0, 0, y}},
                  .expected = std::move(expected)};
  };
  // In tanh_gradient: 1 - (1 - 2^-24)^2 is 2^-23 - 2^-48; the square as a float is 1 - 2^-23.
  return {sample("add", {1, -2.5}, {2, 0.5}, {3, -2}),
          sample("sub", {1, -2.5}, {2, 0.5}, {-1, -3}),
          sample("mul", {1, -2.5}, {2, 0.5}, {2, -1.25}),
          sample("div", {1, -2.5, 0, 1}, {2, 0.5, 0, 0}, {0.5, -5, kNan, kInf}),
          sample("mod", {7, -7, 7, -7, 6, -1}, {3, 3, -3, -3, 3, 0}, {1, 2, -2, -1, 0, kNan}),
          sample("pow", {2, 4, 0, -2, kNan, -2}, {10, -0.5, 0, 3, 0, 0.5}, {1024, 0.5, 1, -8, 1, kNan}),
          sample("minimum", {1, -2.5, kNan, 1}, {2, -3, 1, kNan}, {1, -3, kNan, kNan}),
          sample("maximum", {1, -2.5, kNan, 1}, {2, -3, 1, kNan}, {2, -2.5, kNan, kNan}),
          sample("square_gradient", {3, -2.5, 0}, {2, 0.5, 7}, {12, -2.5, 0}),
          sample("relu_gradient", {3, 0, -2, kNan, 1}, {2, 3, 4, 5, kInf}, {2, 0, 0, 0, kInf}),
          sample("tanh_gradient", {0.5, -1, 0, 1 - 0x1p-24}, {2, 3, -4, 0x1p23}, {1.5, 0, -4, 1 - 0x1p-25}),
          sample("sigmoid_gradient", {0.5, 1, 0, 0.25}, {2, 3, 4, 16}, {0.5, 0, 0, 3}),
          sample("softplus_gradient", {0, kInf, -kInf}, {3, -2, 5}, {1.5, -2, 0})};
}

Sample where(std::string name, TensorType condition, TensorType x, TensorType y, std::int64_t capacity = 1,
             std::int64_t count = -1) {
  condition.dtype = DType::boolean;
  return {.op = "where",
          .name = std::move(name),
          .operands = {{condition}, {x, 0, 9}, {y, 0, 9}},
          .capacity = capacity,
          .count = count};
}

std::vector<Sample> where_samples() {
  std::vector<Sample> list = {
      where("odd", f32({7, 13}), f32({7, 13}), f32({7, 13})),
      where("large", f32({1037}), f32({1037}), f32({1037})),
      where("scalar_condition", f32({}), f32({4, 3}), f32({4, 3})),
      where("scalar_values", f32({4, 3}), f32({}), f32({})),
      where("vector_column", f32({3}), f32({4, 1}), f32({4, 3})),
      where("condition_grows", f32({4, 3}), f32({3}), f32({4, 1})),
      where("scalars", f32({}), f32({}), f32({})),
      where("empty", f32({0, 3}), f32({3}), f32({})),
      where("rows", rows_f32({5, 3}), rows_f32({5, 3}), f32({3}), 5, 3),
      where("rows_condition", rows_f32({5, 1}), f32({3}), f32({}), 5, 3),
      where("rows_values", f32({3}), rows_f32({5, 3}), rows_f32({5, 1}), 5, 3),
      where("no_rows", rows_f32({5, 3}), f32({}), f32({}), 5, 0),
      where("f64", f32({5, 3}), typed(DType::f64, {3}), typed(DType::f64, {5, 1})),
      where("i32", f32({5, 3}), typed(DType::i32, {5, 3}), typed(DType::i32, {3})),
      where("u64", f32({5, 3}), typed(DType::u64, {5, 3}), typed(DType::u64, {3})),
      where("boolean", f32({5, 3}), typed(DType::boolean, {5, 3}), typed(DType::boolean, {3})),
      differentiable(where("gradient", f32({4, 3}), f32({3}), f32({4, 1}))),
      differentiable(where("gradient_rows", rows_f32({5, 3}), rows_f32({5, 3}), f32({3}), 5, 3))};
  Sample exact{.op = "where", .name = "exact_not_chosen_nan", .operands = {}};
  exact.operands = {{typed(DType::boolean, {4}), 0, 0, {1, 0, 1, 0}},
                    {f32({4}), 0, 0, {1, kNan, kInf, 4}},
                    {f32({4}), 0, 0, {kNan, 6, 7, -kInf}}};
  exact.expected = {1, 6, kInf, -kInf};
  list.push_back(exact);
  return list;
}

}  // namespace

std::vector<Sample> binary() {
  std::vector<Sample> list = exact_binary();
  for (const Binary& row : binary_table()) {
    for (const Pair& pair : shapes()) {
      list.push_back({.op = row.op,
                      .name = std::string(pair.name),
                      .operands = {{pair.x, row.x_low, row.x_high}, {pair.y, row.y_low, row.y_high}},
                      .tolerance = {scalar_ulps(row.op), 0},
                      .capacity = pair.capacity,
                      .count = pair.count});
    }
    list.push_back(special(row));
    const auto smooth = [&](std::string name, TensorType x, TensorType y) {
      return differentiable({.op = row.op,
                             .name = "gradient_" + std::move(name),
                             .operands = {{x, 0, 0, row.x_smooth}, {y, 0, 0, row.y_smooth}},
                             .tolerance = {scalar_ulps(row.op), 0}});
    };
    list.push_back(smooth("same", f32({7}), f32({7})));
    list.push_back(smooth("vector_right", f32({4, 3}), f32({3})));
    list.push_back(smooth("scalar_left", f32({}), f32({4, 3})));
    list.push_back(smooth("outer", f32({4, 1}), f32({1, 3})));
    list.push_back(smooth("rank_three", f32({2, 1, 3}), f32({2, 1})));
    list.push_back(batch_of(3, smooth("rows_vector", rows_f32({5, 3}), f32({3}))));
    list.push_back(batch_of(3, smooth("scalar_rows", f32({}), rows_f32({5, 2}))));
    list.push_back(batch_of(3, smooth("rows_column", rows_f32({5, 3}), rows_f32({5, 1}))));
  }
  for (Sample& sample : where_samples()) list.push_back(std::move(sample));
  return list;
}

}  // namespace graphrun::test::samples
