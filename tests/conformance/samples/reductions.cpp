// sum: every choice of axes, with and without the kept axes, over rows and beside them.
#include <limits>

#include "conformance/samples.h"

namespace graphrun::test::samples {
namespace {

using Axes = std::vector<std::int64_t>;

Sample sum(std::string name, TensorType x, Axes axes = {}, bool keepdims = false) {
  Sample s{.op = "sum", .name = std::move(name), .operands = {{x}}};
  s.attributes = {{"axes", std::move(axes)}, {"keepdims", keepdims}};
  // n terms below 2: the error of a sum in any order is at most n * 2n * 2^-24, and far less in practice.
  const double unit = x.dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
  s.tolerance = {0, 8 * static_cast<double>(x.shape.elements() + 1) * unit};
  return s;
}

}  // namespace

std::vector<Sample> reductions() {
  std::vector<Sample> list = {sum("scalar", f32({})),
                              sum("all", f32({5, 7})),
                              sum("all_kept", f32({5, 7}), {}, true),
                              sum("axis_0", f32({5, 7}), {0}),
                              sum("axis_0_kept", f32({5, 7}), {0}, true),
                              sum("last_axis", f32({5, 7}), {-1}),
                              sum("last_axis_kept", f32({5, 7}), {-1}, true),
                              sum("middle_axis", f32({3, 5, 7}), {1}),
                              sum("outer_axes", f32({3, 5, 7}), {0, 2}),
                              sum("outer_axes_kept", f32({3, 5, 7}), {2, 0}, true),
                              sum("last_two_axes", f32({3, 5, 7}), {1, 2}),
                              sum("axis_of_one", f32({4, 1, 3}), {1}),
                              sum("alternate_axes", f32({2, 3, 2, 3, 2, 3}), {1, 3, 5}),
                              sum("rank_eight", f32({2, 1, 2, 3, 1, 2, 1, 2}), {0, 3, 7}),
                              sum("large", f32({10007})),
                              sum("large_axis_0", f32({1031, 37}), {0}),
                              sum("large_last_axis", f32({37, 1031}), {1}),
                              sum("large_tall", f32({5003, 1}), {0}),
                              sum("empty_axis_gives_zeros", f32({0, 3}), {0}),
                              sum("empty_all", f32({0, 3})),
                              sum("empty_result", f32({0, 3}), {1}),
                              sum("f64", typed(DType::f64, {5, 7}), {0}),
                              sum("rows_always_full", rows_f32({1, 7}), {0}),
                              batch_of(3, sum("partial_rows_all", rows_f32({5, 7}))),
                              batch_of(3, sum("partial_rows_axis_0", rows_f32({5, 7}), {0})),
                              batch_of(3, sum("partial_rows_axis_0_kept", rows_f32({5, 7}), {0}, true)),
                              batch_of(3, sum("partial_rows_stay", rows_f32({5, 7}), {1})),
                              batch_of(3, sum("partial_rows_stay_kept", rows_f32({5, 7}), {1}, true)),
                              batch_of(3, sum("partial_rows_rank_three", rows_f32({5, 2, 3}), {2})),
                              batch_of(2, sum("partial_double_rows", rows_f32({10, 3}, 2), {0})),
                              batch_of(2, sum("partial_double_rows_stay", rows_f32({10, 3}, 2), {1})),
                              batch_of(2, sum("row_vector", rows_f32({5}))),
                              batch_of(0, sum("no_rows", rows_f32({5, 7}), {0})),
                              batch_of(5, sum("full_rows", rows_f32({5, 7}), {0})),
                              batch_of(701, sum("large_partial_rows", rows_f32({1000, 5}), {0}), 1000),
                              differentiable(sum("gradient_all", f32({3, 4}))),
                              differentiable(sum("gradient_axis_0", f32({3, 4}), {0})),
                              differentiable(sum("gradient_last_axis_kept", f32({3, 4}), {1}, true)),
                              differentiable(sum("gradient_middle_axis", f32({2, 3, 4}), {1})),
                              differentiable(batch_of(3, sum("gradient_over_rows", rows_f32({5, 2}), {0}))),
                              differentiable(batch_of(3, sum("gradient_beside_rows", rows_f32({5, 2}), {1})))};

  Sample exact = sum("exact", f32({2, 3}), {0});
  exact.operands[0].values = {1, 2, 3, 4, 5, 6};
  exact.expected = {5, 7, 9};
  list.push_back(exact);
  Sample nan = sum("nan", f32({2, 3}), {1});
  nan.operands[0].values = {1, std::numeric_limits<double>::quiet_NaN(), 3, 4, 5, 6};
  nan.expected = {std::numeric_limits<double>::quiet_NaN(), 15};
  list.push_back(nan);
  Sample infinite = sum("infinite", f32({2, 2}), {1});
  infinite.operands[0].values = {1, std::numeric_limits<double>::infinity(), 3, 4};
  infinite.expected = {std::numeric_limits<double>::infinity(), 7};
  list.push_back(infinite);
  // Terms that a plain float sum in order would lose.
  Sample unequal = sum("unequal_sizes", f32({4097}));
  unequal.operands[0].values = {0x1p12};
  unequal.operands[0].values.resize(4097, 0x1p-10);
  unequal.tolerance = {0, 0x1p-20};
  list.push_back(unequal);
  return list;
}

}  // namespace graphrun::test::samples
