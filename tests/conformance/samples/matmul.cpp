// matmul: transposes, odd, large and empty extents, kept and contracted rows; leading dimensions that match, broadcast,
// or contain the batch.
#include <limits>

#include "conformance/samples.h"

namespace graphrun::test::samples {
namespace {

Sample product(std::string name, TensorType a, TensorType b, bool transpose_a = false, bool transpose_b = false) {
  const std::int64_t inner = a.shape[a.shape.rank() - (transpose_a ? 2 : 1)];
  Sample s{.op = "matmul", .name = std::move(name), .operands = {{a}, {b}}};
  s.attributes = {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}};
  // A sum of n products of numbers below 4 has an error of at most n * 4n * 2^-24 (f32), in practice far less.
  const double unit = a.dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  s.tolerance = {0, 4 * static_cast<double>(inner) * unit};
  return s;
}

void add_leading(std::vector<Sample>& list) {
  const auto add = [&](Sample sample) { list.push_back(std::move(sample)); };
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const std::string suffix = std::string(ta ? "_transpose_a" : "") + (tb ? "_transpose_b" : "");
      const auto shaped = [&](std::string name, std::vector<std::int64_t> leading_a, std::int64_t m, std::int64_t k,
                              std::vector<std::int64_t> leading_b, std::int64_t n, DType dtype = DType::f32) {
        for (const std::int64_t extent : {ta ? k : m, ta ? m : k}) leading_a.push_back(extent);
        for (const std::int64_t extent : {tb ? n : k, tb ? k : n}) leading_b.push_back(extent);
        return product(std::move(name) + suffix, typed(dtype, Shape(leading_a)), typed(dtype, Shape(leading_b)), ta,
                       tb);
      };
      add(shaped("batched", {3}, 5, 7, {3}, 2));
      add(shaped("batched_rank_four", {2, 3}, 3, 5, {2, 3}, 4));
      add(shaped("batched_shared_right", {3}, 5, 7, {}, 2));
      add(shaped("batched_shared_left", {}, 5, 7, {3}, 2));
      add(shaped("batched_one_matrix", {1}, 5, 7, {3}, 2));
      add(shaped("batched_outer", {3, 1}, 5, 7, {4}, 2));
      add(shaped("batched_middle", {2, 1, 3}, 2, 5, {2, 4, 1}, 3));
      add(shaped("batched_large", {3}, 37, 129, {3}, 35));
      add(shaped("batched_ones", {1, 1}, 1, 1, {1}, 1));
      add(shaped("batched_no_inner", {3}, 2, 0, {3}, 4));
      add(shaped("batched_no_outer", {3}, 0, 2, {3}, 4));
      add(shaped("batched_no_columns", {3}, 2, 4, {3}, 0));
      add(shaped("batched_none", {0}, 2, 3, {1}, 4));
      add(shaped("batched_f64", {3}, 5, 7, {3}, 2, DType::f64));
      add(differentiable(shaped("gradient_batched", {2}, 3, 2, {2}, 2)));
      add(differentiable(shaped("gradient_shared_right", {2}, 3, 2, {}, 2)));
      add(differentiable(shaped("gradient_shared_left", {}, 3, 2, {2}, 2)));
      add(differentiable(shaped("gradient_outer", {2, 1}, 1, 2, {3}, 2)));
    }
  }
  add(batch_of(3, product("batched_partial_rows", rows_f32({5, 3, 4}), rows_f32({5, 4, 2}))));
  add(batch_of(3, product("batched_partial_rows_transposed", rows_f32({5, 4, 3}), rows_f32({5, 2, 4}), true, true)));
  add(batch_of(3, product("batched_partial_rows_shared_right", rows_f32({5, 3, 4}), f32({4, 2}))));
  add(batch_of(3, product("batched_partial_rows_shared_left", f32({3, 4}), rows_f32({5, 4, 2}))));
  add(batch_of(3, product("batched_partial_rows_one_matrix", rows_f32({5, 3, 4}), f32({1, 4, 2}))));
  add(batch_of(3, product("batched_partial_rows_heads", rows_f32({5, 2, 3, 4}), f32({2, 4, 2}))));
  add(batch_of(2, product("batched_partial_double_rows", rows_f32({10, 3, 4}, 2), rows_f32({10, 4, 2}, 2))));
  add(batch_of(5, product("batched_full_rows", rows_f32({5, 3, 4}), rows_f32({5, 4, 2}))));
  add(batch_of(1, product("batched_one_row", rows_f32({5, 3, 4}), rows_f32({5, 4, 2}))));
  add(batch_of(0, product("batched_no_rows", rows_f32({5, 3, 4}), rows_f32({5, 4, 2}))));
  add(batch_of(3, product("batched_rows_no_inner", rows_f32({5, 3, 0}), rows_f32({5, 0, 2}))));
  add(differentiable(batch_of(3, product("gradient_batched_rows", rows_f32({5, 2, 3}), rows_f32({5, 3, 2})))));
  add(differentiable(batch_of(3, product("gradient_rows_shared_right", rows_f32({5, 2, 3}), f32({3, 2})))));
  add(differentiable(batch_of(3, product("gradient_rows_shared_left", f32({2, 3}), rows_f32({5, 3, 2})))));
  add(differentiable(batch_of(3, product("gradient_rows_heads", rows_f32({5, 2, 2, 3}), f32({2, 3, 2})))));

  Sample infinite = batch_of(3, product("batched_infinite_weight_partial_rows", rows_f32({5, 1, 2}), f32({2, 2})));
  infinite.operands[1].values = {1, std::numeric_limits<double>::infinity(), 1, 2};
  add(infinite);
  Sample exact = product("exact_batched_outer", f32({2, 1, 1, 2}), f32({2, 2, 1}));
  exact.operands[0].values = {1, 2, 3, 4};
  exact.operands[1].values = {5, 6, 7, 8};
  exact.expected = {17, 23, 39, 53};
  add(exact);
}

// A = M^T M, with off-diagonal elements below the diagonal that must not be read.
Sample solve(std::string name, std::int64_t n, double shift, DType dtype = DType::f32) {
  std::vector<double> A, b;
  for (std::int64_t i = 0; i < n; ++i) {
    b.push_back(static_cast<double>(i % 5) - 2);
    for (std::int64_t j = 0; j < n; ++j)
      A.push_back(j < i ? 99 : i == j ? 4 + static_cast<double>(i % 3) : 0.5 / static_cast<double>(j - i));
  }
  Sample s{
      .op = "solve_spd",
      .name = std::move(name),
      .operands = {{typed(dtype, {n, n}), 0, 1, A}, {typed(dtype, {n}), 0, 1, b}, {typed(dtype, {}), 0, 1, {shift}}}};
  s.tolerance = {0, dtype == DType::f64 ? 1e-14 : 1e-6};
  return s;
}

void add_solutions(std::vector<Sample>& list) {
  for (const std::int64_t n : {1, 2, 7, 33, 61}) list.push_back(solve("n" + std::to_string(n), n, 0.5));
  list.push_back(solve("f64", 7, 0, DType::f64));
  Sample exact = solve("exact", 2, 1);
  exact.operands[0].values = {3, 2, 0, 4};
  exact.operands[1].values = {8, 9};
  exact.expected = {1.375, 1.25};  // 4 x + 2 y = 8, 2 x + 5 y = 9
  list.push_back(exact);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Sample failed = exact;
  failed.name = "failed_pivot";
  failed.operands[0].values = {3, 9, 0, 4};
  failed.expected = {nan, nan};
  list.push_back(failed);
}

}  // namespace

std::vector<Sample> matmul() {
  std::vector<Sample> list;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const std::string suffix = std::string(ta ? "_transpose_a" : "") + (tb ? "_transpose_b" : "");
      const auto shaped = [&](std::string name, std::int64_t m, std::int64_t k, std::int64_t n,
                              DType dtype = DType::f32) {
        return product(std::move(name) + suffix, typed(dtype, ta ? Shape{k, m} : Shape{m, k}),
                       typed(dtype, tb ? Shape{n, k} : Shape{k, n}), ta, tb);
      };
      list.push_back(shaped("odd", 5, 7, 3));
      list.push_back(shaped("one", 1, 1, 1));
      list.push_back(shaped("row", 1, 9, 17));
      list.push_back(shaped("column", 17, 9, 1));
      list.push_back(shaped("inner_one", 6, 1, 5));
      list.push_back(shaped("large", 67, 129, 35));
      list.push_back(shaped("long_inner", 3, 1031, 5));
      list.push_back(shaped("wide", 3, 5, 1031));
      list.push_back(shaped("tall", 1031, 5, 3));
      list.push_back(shaped("many", 171, 70, 130));
      list.push_back(shaped("no_inner", 3, 0, 4));
      list.push_back(shaped("no_outer", 0, 3, 4));
      list.push_back(shaped("no_columns", 3, 4, 0));
      list.push_back(shaped("f64", 5, 7, 3, DType::f64));
      list.push_back(differentiable(shaped("gradient", 4, 3, 2)));
    }
  }
  list.push_back(batch_of(3, product("partial_rows", rows_f32({5, 7}), f32({7, 4}))));
  list.push_back(batch_of(3, product("transpose_b_partial_rows", rows_f32({5, 7}), f32({4, 7}), false, true)));
  list.push_back(batch_of(3, product("transpose_a_partial_rows", rows_f32({5, 3}), rows_f32({5, 4}), true)));
  list.push_back(batch_of(5, product("full_rows", rows_f32({5, 7}), f32({7, 4}))));
  list.push_back(batch_of(0, product("no_rows", rows_f32({5, 7}), f32({7, 4}))));
  list.push_back(batch_of(0, product("transpose_a_no_rows", rows_f32({5, 3}), rows_f32({5, 4}), true)));
  list.push_back(batch_of(2, product("partial_double_rows", rows_f32({10, 7}, 2), f32({7, 4}))));
  list.push_back(batch_of(2, product("transpose_a_double_rows", rows_f32({10, 3}, 2), rows_f32({10, 4}, 2), true)));
  list.push_back(batch_of(71, product("large_partial_rows", rows_f32({100, 65}), f32({65, 33})), 100));
  list.push_back(
      batch_of(71, product("large_transpose_a_partial_rows", rows_f32({100, 65}), rows_f32({100, 33}), true), 100));
  list.push_back(batch_of(171, product("many_partial_rows", rows_f32({200, 70}), f32({70, 130})), 200));
  list.push_back(
      batch_of(71, product("many_transpose_a_partial_rows", rows_f32({100, 171}), rows_f32({100, 130}), true), 100));
  list.push_back(batch_of(1, product("column_partial_rows", rows_f32({5, 7}), f32({7, 1}))));
  list.push_back(differentiable(batch_of(3, product("gradient_rows", rows_f32({5, 3}), f32({3, 2})))));
  list.push_back(
      differentiable(batch_of(3, product("gradient_transpose_b_rows", rows_f32({5, 3}), f32({2, 3}), false, true))));
  list.push_back(
      differentiable(batch_of(3, product("gradient_transpose_a_rows", rows_f32({5, 3}), rows_f32({5, 2}), true))));

  // 0 * infinity must not affect the rows outside the batch.
  Sample infinite = batch_of(3, product("infinite_weight_partial_rows", rows_f32({5, 2}), f32({2, 2})));
  infinite.operands[1].values = {1, std::numeric_limits<double>::infinity(), 1, 2};
  list.push_back(infinite);
  Sample nan = product("nan", f32({3, 4}), f32({4, 3}));
  nan.operands[0].values = {1, 2, 3, 4, 5, std::numeric_limits<double>::quiet_NaN(), 7, 8, 9, 0, 1, 2};
  list.push_back(nan);

  const auto exact = [&](std::string name, bool ta, bool tb, std::vector<double> expected) {
    Sample s = product(std::move(name), f32({2, 2}), f32({2, 2}), ta, tb);
    s.operands[0].values = {1, 2, 3, 4};
    s.operands[1].values = {5, 6, 7, 8};
    s.expected = std::move(expected);
    list.push_back(s);
  };
  exact("exact", false, false, {19, 22, 43, 50});
  exact("exact_transpose_a", true, false, {26, 30, 38, 44});
  exact("exact_transpose_b", false, true, {17, 23, 39, 53});
  exact("exact_transpose_both", true, true, {23, 31, 34, 46});
  add_leading(list);
  add_solutions(list);
  return list;
}

}  // namespace graphrun::test::samples
