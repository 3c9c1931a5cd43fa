// reshape, broadcast_to and cast: no arithmetic, so everything is exact.
#include <limits>

#include "conformance/samples.h"

namespace graphrun::test::samples {
namespace {

using Extents = std::vector<std::int64_t>;

Sample reshape(std::string name, TensorType x, Extents shape) {
  return {
      .op = "reshape", .name = std::move(name), .operands = {{x, 0, 9}}, .attributes = {{"shape", std::move(shape)}}};
}

Sample broadcast(std::string name, TensorType x, Extents shape, std::int64_t rows = 0) {
  return {.op = "broadcast_to",
          .name = std::move(name),
          .operands = {{x, 0, 9}},
          .attributes = {{"shape", std::move(shape)}, {"rows", rows}}};
}

Sample cast(std::string name, TensorType x, DType to, std::vector<double> values = {}) {
  return {.op = "cast",
          .name = std::move(name),
          .operands = {{x, 0, 9, std::move(values)}},
          .attributes = {{"dtype", std::string(name_of(to))}}};
}

}  // namespace

std::vector<Sample> movement() {
  std::vector<Sample> list = {
      reshape("flat", f32({3, 5}), {15}),
      reshape("split", f32({12}), {2, -1, 3}),
      reshape("scalar", f32({1, 1}), {}),
      reshape("column", f32({7}), {-1, 1}),
      reshape("empty", f32({0, 3}), {3, 0}),
      reshape("u64", typed(DType::u64, {4}), {2, 2}),
      reshape("boolean", typed(DType::boolean, {3, 2}), {6}),
      batch_of(3, reshape("partial_rows", rows_f32({5, 6}), {5, 2, 3})),
      batch_of(3, reshape("partial_rows_doubled", rows_f32({5, 6}), {10, 3})),
      batch_of(3, reshape("partial_rows_halved", rows_f32({10, 3}, 2), {5, 6})),
      differentiable(reshape("gradient", f32({3, 4}), {2, 6})),
      differentiable(batch_of(3, reshape("gradient_rows", rows_f32({5, 4}), {10, 2}))),

      broadcast("scalar", f32({}), {4, 3}),
      broadcast("scalar_to_scalar", f32({}), {}),
      broadcast("same", f32({4, 3}), {4, 3}),
      broadcast("vector", f32({3}), {4, 3}),
      broadcast("column", f32({4, 1}), {4, 3}),
      broadcast("middle", f32({2, 1, 3}), {2, 5, 3}),
      broadcast("new_axes", f32({2, 1}), {3, 2, 2, 4}),
      broadcast("large", f32({33, 1}), {33, 67}),
      broadcast("large_vector", f32({1037}), {3, 1037}),
      broadcast("empty", f32({1, 3}), {0, 3}),
      broadcast("f64", typed(DType::f64, {3}), {2, 3}),
      broadcast("i32", typed(DType::i32, {3}), {2, 3}),
      broadcast("u64", typed(DType::u64, {3}), {2, 3}),
      broadcast("boolean", typed(DType::boolean, {3}), {2, 3}),
      batch_of(3, broadcast("vector_to_rows", f32({3}), {5, 3}, 1)),
      batch_of(3, broadcast("one_row_to_rows", f32({1, 3}), {5, 3}, 1)),
      batch_of(3, broadcast("scalar_to_rows", f32({}), {5}, 1)),
      batch_of(3, broadcast("rows_widen", rows_f32({5, 1}), {5, 4}, 1)),
      batch_of(2, broadcast("scalar_to_double_rows", f32({}), {10, 2}, 2)),
      batch_of(0, broadcast("no_rows", f32({3}), {5, 3}, 1)),
      differentiable(broadcast("gradient", f32({3, 1}), {2, 3, 4})),
      differentiable(batch_of(3, broadcast("gradient_to_rows", f32({2}), {5, 2}, 1))),
      differentiable(batch_of(3, broadcast("gradient_rows_widen", rows_f32({5, 1}), {5, 2}, 1))),

      cast("large", f32({1037}), DType::f64),
      cast("scalar", f32({}), DType::i32),
      cast("empty", f32({0, 3}), DType::i32),
      batch_of(3, cast("partial_rows", rows_f32({5, 3}), DType::f64)),
      batch_of(3, cast("partial_rows_from_boolean", typed(DType::boolean, {5, 3}, 1), DType::f32)),
      batch_of(0, cast("no_rows", rows_f32({5, 3}), DType::i32)),
      differentiable(cast("gradient", f32({3, 4}), DType::f64)),
  };
  Sample split = reshape("exact", f32({2, 3}), {3, 2});
  split.operands[0].values = {1, 2, 3, 4, 5, 6};
  split.expected = {1, 2, 3, 4, 5, 6};
  list.push_back(split);
  Sample column = broadcast("exact", f32({2, 1}), {2, 2, 2});
  column.operands[0].values = {1, 2};
  column.expected = {1, 1, 2, 2, 1, 1, 2, 2};
  list.push_back(column);

  const DType all[] = {DType::f32, DType::f64, DType::i32, DType::u64, DType::boolean};
  for (const DType from : all) {
    for (const DType to : all) {
      const std::string name = std::string(name_of(from)) + "_to_" + std::string(name_of(to));
      const std::vector<double> values =
          from == DType::boolean ? std::vector<double>{0, 1, 1} : std::vector<double>{0, 1, 7};
      list.push_back(cast(name, typed(from, {3}), to, values));
      list.back().expected = to == DType::boolean ? std::vector<double>{0, 1, 1} : values;
    }
  }
  const auto exact = [&](std::string name, DType from, DType to, std::vector<double> values, std::vector<double> out) {
    list.push_back(cast(std::move(name), typed(from, {static_cast<std::int64_t>(values.size())}), to, values));
    list.back().expected = std::move(out);
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  exact("toward_zero", DType::f32, DType::i32, {1.75, -1.75, 0.5, -0.5}, {1, -1, 0, 0});
  exact("negative_i32", DType::i32, DType::f32, {-7, 16777216}, {-7, 16777216});
  exact("to_float_rounds", DType::f64, DType::f32, {1 + 0x1p-24, 1 + 0x1.8p-24, 1e300, nan},
        {1, 1 + 0x1p-23, inf, nan});
  exact("special_to_f64", DType::f32, DType::f64, {nan, inf, -inf, 0x1p-149}, {nan, inf, -inf, 0x1p-149});
  exact("nonzero_is_true", DType::f32, DType::boolean, {0.25, 0, -3, inf, -0.0, nan}, {1, 0, 1, 1, 0, 1});
  exact("large_u64", DType::u64, DType::f64, {9007199254740992.0, 3}, {9007199254740992.0, 3});
  return list;
}

}  // namespace graphrun::test::samples
