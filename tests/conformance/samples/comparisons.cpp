// Comparisons and logic return booleans, so everything is exact.

#include "conformance/samples.h"

namespace graphrun::test::samples {
namespace {

// Lists of different lengths, to get equal, smaller and larger pairs.
const std::vector<double> kLeft = {-2, 0, 1, 1.5, 3, -0.0, 2};
const std::vector<double> kRight = {1, 0, -2, 1.5, 3};

struct Case {
  std::string_view name;
  TensorType x, y;
  std::int64_t capacity = 1;
  std::int64_t count = -1;
};

std::vector<Case> shapes(DType dtype) {
  const auto type = [dtype](Shape shape, std::int64_t rows = 0) { return typed(dtype, shape, rows); };
  return {{"odd", type({7, 13}), type({7, 13})},
          {"scalars", type({}), type({})},
          {"large", type({1037}), type({1037})},
          {"scalar_right", type({4, 3}), type({})},
          {"vector_left", type({3}), type({4, 3})},
          {"outer", type({7, 1}), type({5})},
          {"empty", type({0, 3}), type({3})},
          {"rows_rows", type({5, 3}, 1), type({5, 3}, 1), 5, 3},
          {"rows_vector", type({5, 3}, 1), type({3}), 5, 3},
          {"scalar_rows", type({}), type({5, 3}, 1), 5, 3},
          {"double_rows", type({10}, 2), type({10}, 2), 5, 2},
          {"no_rows", type({5, 3}, 1), type({3}), 5, 0}};
}

std::vector<double> table(std::string_view op, const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<double> out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool value = op == "equal"           ? x[i] == y[i]
                       : op == "not_equal"     ? x[i] != y[i]
                       : op == "less"          ? x[i] < y[i]
                       : op == "less_equal"    ? x[i] <= y[i]
                       : op == "greater"       ? x[i] > y[i]
                       : op == "greater_equal" ? x[i] >= y[i]
                       : op == "logical_and"   ? x[i] != 0 && y[i] != 0
                                               : x[i] != 0 || y[i] != 0;
    out.push_back(value ? 1 : 0);
  }
  return out;
}

Sample pair(std::string_view op, std::string name, const Case& c, std::vector<double> x, std::vector<double> y) {
  return {.op = std::string(op),
          .name = std::move(name),
          .operands = {{c.x, 0, 1, std::move(x)}, {c.y, 0, 1, std::move(y)}},
          .capacity = c.capacity,
          .count = c.count};
}

void add_comparison(std::vector<Sample>& list, std::string_view op) {
  for (const Case& c : shapes(DType::f32)) list.push_back(pair(op, std::string(c.name), c, kLeft, kRight));
  for (const Case& c : shapes(DType::i32)) list.push_back(pair(op, "i32_" + std::string(c.name), c, kLeft, kRight));
  std::vector<double> x;
  std::vector<double> y;
  for (const double a : {kNan, kInf, -kInf, 0.0, -0.0, 1.0, 0x1p-140}) {
    for (const double b : {kNan, kInf, -kInf, 0.0, -0.0, 1.0, 0x1p-140}) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  const auto exact = [&](std::string name, DType dtype, std::vector<double> a, std::vector<double> b) {
    const TensorType type = typed(dtype, {static_cast<std::int64_t>(a.size())});
    list.push_back(pair(op, std::move(name), {"", type, type}, a, b));
    list.back().expected = table(op, a, b);
  };
  exact("special", DType::f32, x, y);
  exact("f64", DType::f64, {0.1, 0.1, 1}, {0.1, 0x1.999999p-4, 2});  // the second differs beyond float digits
  exact("i32", DType::i32, {-3, 2, 16777217, -1}, {2, 2, 16777216, -2});
  exact("u64", DType::u64, {3, 2, 9007199254740991.0, 0}, {2, 2, 9007199254740990.0, 1});
  exact("boolean", DType::boolean, {0, 0, 1, 1}, {0, 1, 0, 1});
}

}  // namespace

std::vector<Sample> comparisons() {
  std::vector<Sample> list;
  for (const char* op : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
    add_comparison(list, op);
  }
  for (const char* op : {"logical_and", "logical_or"}) {
    for (const Case& c : shapes(DType::boolean)) list.push_back(pair(op, std::string(c.name), c, {}, {}));
    const TensorType four = typed(DType::boolean, {4});
    list.push_back(pair(op, "exact", {"", four, four}, {0, 0, 1, 1}, {0, 1, 0, 1}));
    list.back().expected = table(op, {0, 0, 1, 1}, {0, 1, 0, 1});
  }
  for (const Case& c : shapes(DType::boolean)) {
    Sample s{.op = "logical_not", .name = std::string(c.name), .operands = {{c.x}}};
    s.capacity = c.capacity;
    s.count = c.x.rows > 0 ? c.count : -1;
    list.push_back(s);
  }
  list.push_back({.op = "logical_not",
                  .name = "exact",
                  .operands = {{typed(DType::boolean, {3}), 0, 1, {0, 1, 1}}},
                  .expected = {1, 0, 0}});
  return list;
}

}  // namespace graphrun::test::samples
