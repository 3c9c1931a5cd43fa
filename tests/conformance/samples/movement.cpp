// Ops that move elements: no arithmetic, so everything is exact.
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

const DType kMoved[] = {DType::f32, DType::f64, DType::i32, DType::u64, DType::boolean};

void add(std::vector<Sample>& list, std::vector<Sample> more) {
  for (Sample& sample : more) list.push_back(std::move(sample));
}

// Operands 0, 1, 2, … so that the result shows the source of each element.
Sample exact(Sample sample, std::vector<double> expected) {
  double next = 0;
  for (Operand& operand : sample.operands) {
    operand.values.clear();
    for (std::int64_t i = 0; i < operand.type.shape.elements(); ++i) operand.values.push_back(next++);
    if (operand.values.empty()) operand.values = {0};
  }
  sample.expected = std::move(expected);
  return sample;
}

Sample transpose(std::string name, TensorType x, Extents axes = {}) {
  return {
      .op = "transpose", .name = std::move(name), .operands = {{x, 0, 9}}, .attributes = {{"axes", std::move(axes)}}};
}

void add_transposes(std::vector<Sample>& list) {
  add(list, {transpose("scalar", f32({})),
             transpose("vector", f32({7})),
             transpose("odd", f32({7, 13})),
             transpose("identity", f32({3, 5}), {0, 1}),
             transpose("negative_axes", f32({3, 5, 2}), {-1, 0, 1}),
             transpose("reversed_rank_four", f32({2, 3, 4, 5})),
             transpose("size_one_axes", f32({1, 5, 1, 3}), {3, 0, 2, 1}),
             transpose("rank_eight", f32({2, 1, 2, 3, 1, 2, 1, 2}), {7, 3, 0, 1, 5, 2, 6, 4}),
             transpose("large", f32({65, 133})),
             transpose("large_tall", f32({1037, 3})),
             transpose("empty", f32({0, 3})),
             transpose("empty_inner", f32({2, 0, 3}), {2, 0, 1}),
             batch_of(5, transpose("full_rows", rows_f32({5, 2, 3}), {0, 2, 1})),
             batch_of(3, transpose("partial_rows", rows_f32({5, 2, 3}), {0, 2, 1})),
             batch_of(3, transpose("partial_rows_heads", rows_f32({5, 4, 2, 3}), {0, 2, 1, 3})),
             batch_of(2, transpose("partial_double_rows", rows_f32({10, 2, 3}, 2), {0, -1, 1})),
             batch_of(0, transpose("no_rows", rows_f32({5, 2, 3}), {0, 2, 1})),
             exact(transpose("exact", f32({2, 3})), {0, 3, 1, 4, 2, 5}),
             exact(transpose("exact_axes", f32({2, 1, 3}), {2, 0, 1}), {0, 3, 1, 4, 2, 5}),
             differentiable(transpose("gradient", f32({2, 3, 4}), {2, 0, 1})),
             differentiable(batch_of(3, transpose("gradient_rows", rows_f32({5, 2, 3}), {0, 2, 1})))});
  for (const DType dtype : kMoved) list.push_back(transpose(std::string(name_of(dtype)), typed(dtype, {3, 5})));
}

Sample slice(std::string name, TensorType x, std::int64_t axis, std::int64_t start, std::int64_t stop) {
  return {.op = "slice",
          .name = std::move(name),
          .operands = {{x, 0, 9}},
          .attributes = {{"axis", axis}, {"start", start}, {"stop", stop}}};
}

void add_slices(std::vector<Sample>& list) {
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  add(list, {slice("vector", f32({7}), 0, 2, 5),
             slice("odd", f32({7, 13}), 1, 3, 8),
             slice("axis_0", f32({7, 13}), 0, 3, 6),
             slice("middle_axis", f32({3, 5, 7}), 1, 1, 4),
             slice("all", f32({3, 5}), 1, 0, kEnd),
             slice("beyond_the_end", f32({3, 5}), 1, 2, 99),
             slice("negative", f32({3, 5}), -1, -4, -1),
             slice("one", f32({3, 5}), 1, 4, 5),
             slice("none", f32({3, 5}), 1, 5, 5),
             slice("none_inside", f32({3, 5}), 0, 1, 1),
             slice("of_none", f32({3, 0}), 1, 0, kEnd),
             slice("empty", f32({0, 5}), 1, 1, 3),
             slice("large", f32({67, 129}), 1, 31, 97),
             batch_of(5, slice("full_rows", rows_f32({5, 7}), 1, 2, 5)),
             batch_of(3, slice("partial_rows", rows_f32({5, 7}), 1, 2, 5)),
             batch_of(3, slice("partial_rows_middle_axis", rows_f32({5, 4, 3}), 1, 1, 3)),
             batch_of(2, slice("partial_double_rows", rows_f32({10, 4}, 2), 1, 1, 3)),
             batch_of(0, slice("no_rows", rows_f32({5, 7}), 1, 2, 5)),
             exact(slice("exact", f32({2, 4}), 1, 1, 3), {1, 2, 5, 6}),
             exact(slice("exact_axis_0", f32({4, 2}), 0, -3, 3), {2, 3, 4, 5}),
             differentiable(slice("gradient", f32({2, 5}), 1, 1, 4)),
             differentiable(slice("gradient_axis_0", f32({5, 2}), 0, 2, 5)),
             differentiable(slice("gradient_middle_axis", f32({2, 4, 2}), -2, -3, -1)),
             differentiable(batch_of(3, slice("gradient_rows", rows_f32({5, 4}), 1, 0, 2)))});
  for (const DType dtype : kMoved) list.push_back(slice(std::string(name_of(dtype)), typed(dtype, {3, 5}), 1, 1, 4));
}

Sample pad(std::string name, TensorType x, std::int64_t axis, std::int64_t before, std::int64_t after,
           double value = 0) {
  return {.op = "pad",
          .name = std::move(name),
          .operands = {{x, 0, 9}},
          .attributes = {{"axis", axis}, {"before", before}, {"after", after}, {"value", value}}};
}

void add_pads(std::vector<Sample>& list) {
  add(list, {pad("vector", f32({7}), 0, 2, 3),
             pad("odd", f32({7, 13}), 1, 1, 2, 0.25),
             pad("axis_0", f32({7, 13}), 0, 2, 1, -3),
             pad("middle_axis", f32({3, 5, 7}), 1, 1, 1, 0.5),
             pad("nothing", f32({3, 5}), 1, 0, 0),
             pad("before", f32({3, 5}), -1, 2, 0),
             pad("after", f32({3, 5}), -1, 0, 2),
             pad("large_value", f32({3, 5}), 1, 1, 0, 1e30),
             pad("of_none", f32({3, 0}), 1, 2, 1, 7),
             pad("empty", f32({0, 5}), 1, 1, 3),
             pad("large", f32({67, 129}), 1, 31, 97, 1),
             pad("f64", typed(DType::f64, {3, 5}), 1, 1, 4, 0.1),
             batch_of(5, pad("full_rows", rows_f32({5, 7}), 1, 2, 5, 1)),
             batch_of(3, pad("partial_rows", rows_f32({5, 7}), 1, 2, 5, 1)),
             batch_of(3, pad("partial_rows_middle_axis", rows_f32({5, 4, 3}), 1, 1, 3, 1)),
             batch_of(2, pad("partial_double_rows", rows_f32({10, 4}, 2), 1, 1, 3, 1)),
             batch_of(0, pad("no_rows", rows_f32({5, 7}), 1, 2, 5, 1)),
             exact(pad("exact", f32({2, 2}), 1, 1, 2, 9), {9, 0, 1, 9, 9, 9, 2, 3, 9, 9}),
             exact(pad("exact_axis_0", f32({1, 2}), 0, 1, 1, 9), {9, 9, 0, 1, 9, 9}),
             differentiable(pad("gradient", f32({2, 3}), 1, 1, 2, 5)),
             differentiable(pad("gradient_axis_0", f32({2, 3}), 0, 1, 2, 5)),
             differentiable(batch_of(3, pad("gradient_rows", rows_f32({5, 2}), 1, 2, 1, 5)))});
}

Sample concat(std::string name, std::vector<TensorType> parts, std::int64_t axis) {
  Sample s{.op = "concat", .name = std::move(name), .operands = {}, .attributes = {{"axis", axis}}};
  for (const TensorType& part : parts) s.operands.push_back({part, 0, 9});
  return s;
}

void add_concats(std::vector<Sample>& list) {
  const std::vector<TensorType> eight = {f32({2, 1}), f32({2, 3}), f32({2, 0}), f32({2, 2}),
                                         f32({2, 5}), f32({2, 1}), f32({2, 1}), f32({2, 4})};
  add(list, {concat("one", {f32({3, 5})}, 1),
             concat("vectors", {f32({3}), f32({4})}, 0),
             concat("odd", {f32({7, 3}), f32({7, 10})}, 1),
             concat("axis_0", {f32({3, 5}), f32({1, 5}), f32({2, 5})}, 0),
             concat("middle_axis", {f32({2, 3, 4}), f32({2, 1, 4})}, 1),
             concat("eight", eight, -1),
             concat("with_none", {f32({3, 0}), f32({3, 2}), f32({3, 0})}, 1),
             concat("none", {f32({3, 0}), f32({3, 0})}, 1),
             concat("empty", {f32({0, 2}), f32({0, 3})}, 1),
             concat("large", {f32({67, 129}), f32({67, 31})}, 1),
             batch_of(5, concat("full_rows", {rows_f32({5, 3}), rows_f32({5, 4})}, 1)),
             batch_of(3, concat("partial_rows", {rows_f32({5, 3}), rows_f32({5, 4})}, 1)),
             batch_of(3, concat("partial_rows_middle_axis", {rows_f32({5, 1, 3}), rows_f32({5, 2, 3})}, 1)),
             batch_of(2, concat("partial_double_rows", {rows_f32({10, 3}, 2), rows_f32({10, 1}, 2)}, 1)),
             batch_of(0, concat("no_rows", {rows_f32({5, 3}), rows_f32({5, 4})}, 1)),
             exact(concat("exact", {f32({2, 1}), f32({2, 2})}, 1), {0, 2, 3, 1, 4, 5}),
             exact(concat("exact_axis_0", {f32({1, 2}), f32({0, 2}), f32({2, 2})}, 0), {0, 1, 2, 3, 4, 5}),
             differentiable(concat("gradient", {f32({2, 1}), f32({2, 3}), f32({2, 2})}, 1)),
             differentiable(concat("gradient_axis_0", {f32({1, 2}), f32({3, 2})}, 0)),
             differentiable(batch_of(3, concat("gradient_rows", {rows_f32({5, 2}), rows_f32({5, 1})}, 1)))});
  for (const DType dtype : kMoved) {
    list.push_back(concat(std::string(name_of(dtype)), {typed(dtype, {3, 2}), typed(dtype, {3, 3})}, 1));
  }
}

Sample windows(std::string name, TensorType x, Extents size, Extents stride = {}, Extents dilation = {}) {
  return {.op = "windows",
          .name = std::move(name),
          .operands = {{x, 0, 9}},
          .attributes = {{"size", std::move(size)}, {"stride", std::move(stride)}, {"dilation", std::move(dilation)}}};
}

void add_windows(std::vector<Sample>& list) {
  add(list, {windows("length", f32({2, 7, 3}), {3}),
             windows("without_leading_axis", f32({7, 3}), {3}),
             windows("stride", f32({2, 8, 3}), {3}, {2}),
             windows("without_overlap", f32({2, 8, 3}), {2}, {2}),
             windows("dilation", f32({2, 8, 3}), {3}, {1}, {2}),
             windows("whole", f32({2, 4, 3}), {4}),
             windows("one", f32({2, 4, 3}), {1}),
             windows("one_column", f32({3, 9, 1}), {5}),
             windows("no_column", f32({3, 9, 0}), {5}),
             windows("empty", f32({0, 9, 2}), {5}),
             windows("image", f32({2, 6, 5, 3}), {3, 2}),
             windows("image_stride_dilation", f32({2, 9, 8, 3}), {3, 2}, {2, 1}, {1, 3}),
             windows("volume", f32({2, 4, 3, 5, 2}), {2, 1, 3}, {2, 1, 1}),
             windows("two_leading_axes", f32({2, 3, 6, 2}), {3}),
             windows("large", f32({5, 33, 31, 4}), {5, 3}, {1, 2}),
             batch_of(5, windows("full_rows", rows_f32({5, 6, 2}), {3})),
             batch_of(3, windows("partial_rows", rows_f32({5, 6, 2}), {3})),
             batch_of(3, windows("partial_rows_image", rows_f32({5, 4, 4, 1}), {2, 2}, {2, 2})),
             batch_of(2, windows("partial_double_rows", rows_f32({10, 4, 1}, 2), {2})),
             batch_of(0, windows("no_rows", rows_f32({5, 6, 2}), {3})),
             exact(windows("exact", f32({1, 4, 1}), {2}), {0, 1, 1, 2, 2, 3}),
             exact(windows("exact_columns", f32({1, 3, 2}), {2}), {0, 1, 2, 3, 2, 3, 4, 5}),
             exact(windows("exact_image", f32({1, 3, 3, 1}), {2, 2}), {0, 1, 3, 4, 1, 2, 4, 5, 3, 4, 6, 7, 4, 5, 7, 8}),
             exact(windows("exact_stride_dilation", f32({1, 6, 1}), {2}, {3}, {2}), {0, 2, 3, 5}),
             differentiable(windows("gradient", f32({2, 6, 2}), {3}, {2})),
             differentiable(windows("gradient_image", f32({1, 5, 4, 2}), {2, 3}, {1}, {2, 1})),
             differentiable(batch_of(3, windows("gradient_rows", rows_f32({5, 4, 2}), {2})))});
  for (const DType dtype : kMoved) list.push_back(windows(std::string(name_of(dtype)), typed(dtype, {2, 5, 2}), {2}));
}

// x has the type of windows over a value with these extents.
Sample fold(std::string name, TensorType x, Extents extents, Extents size, Extents stride = {}, Extents dilation = {}) {
  Sample sample = windows(std::move(name), x, std::move(size), std::move(stride), std::move(dilation));
  sample.op = "fold";
  sample.attributes.emplace_back("extents", std::move(extents));
  sample.tolerance = {.relative = 1e-6};
  return sample;
}

void add_folds(std::vector<Sample>& list) {
  add(list, {fold("length", f32({2, 5, 3, 3}), {7}, {3}),
             fold("without_leading_axis", f32({5, 3, 3}), {7}, {3}),
             fold("stride_and_rest", f32({2, 3, 3, 3}), {8}, {3}, {2}),
             fold("gaps", f32({2, 2, 2, 3}), {7}, {2}, {4}),  // elements that no window shows are 0
             fold("dilation", f32({2, 4, 3, 3}), {8}, {3}, {1}, {2}),
             fold("one", f32({2, 4, 1, 3}), {4}, {1}),
             fold("single", f32({1, 1, 1, 1}), {1}, {1}),
             fold("no_column", f32({3, 5, 5, 0}), {9}, {5}),
             fold("empty", f32({0, 5, 5, 2}), {9}, {5}),
             fold("image", f32({2, 4, 4, 3, 2, 3}), {6, 5}, {3, 2}),
             fold("image_stride_dilation", f32({2, 4, 5, 3, 2, 3}), {9, 8}, {3, 2}, {2, 1}, {1, 3}),
             fold("volume", f32({2, 2, 3, 3, 2, 1, 3, 2}), {4, 3, 5}, {2, 1, 3}, {2, 1, 1}),
             fold("large", f32({5, 29, 15, 5, 3, 4}), {33, 31}, {5, 3}, {1, 2}),
             batch_of(5, fold("full_rows", rows_f32({5, 4, 3, 2}), {6}, {3})),
             batch_of(3, fold("partial_rows", rows_f32({5, 4, 3, 2}), {6}, {3})),
             batch_of(3, fold("partial_rows_image", rows_f32({5, 2, 2, 2, 2, 1}), {4, 4}, {2, 2}, {2, 2})),
             batch_of(2, fold("partial_double_rows", rows_f32({10, 3, 2, 1}, 2), {4}, {2})),
             batch_of(0, fold("no_rows", rows_f32({5, 4, 3, 2}), {6}, {3})),
             exact(fold("exact", f32({1, 3, 2, 1}), {4}, {2}), {0, 3, 7, 5}),
             exact(fold("exact_image", f32({1, 1, 2, 2, 2, 1}), {2, 3}, {2, 2}), {0, 5, 5, 2, 9, 7}),
             exact(fold("exact_stride_dilation", f32({1, 2, 2, 1}), {7}, {2}, {3}, {2}), {0, 0, 1, 2, 0, 3, 0}),
             differentiable(fold("gradient", f32({2, 2, 3, 2}), {6}, {3}, {2})),
             differentiable(batch_of(3, fold("gradient_rows", rows_f32({5, 3, 2, 1}), {4}, {2})))});
  list.push_back(fold("f64", typed(DType::f64, {2, 4, 2, 2}), {5}, {2}));
}

Sample one_hot(std::string name, TensorType x, std::int64_t classes) {
  x.dtype = DType::i32;
  return {.op = "one_hot",
          .name = std::move(name),
          .operands = {{x, 0, static_cast<double>(classes)}},
          .attributes = {{"classes", classes}}};
}

void add_one_hots(std::vector<Sample>& list) {
  Sample by_hand = one_hot("exact_no_such_class", f32({5}), 3);
  by_hand.operands[0].values = {0, 2, 3, -1, 1};
  by_hand.expected = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0};
  add(list, {by_hand, one_hot("scalar", f32({}), 4), one_hot("vector", f32({11}), 7), one_hot("matrix", f32({3, 5}), 4),
             one_hot("one_class", f32({6}), 1), one_hot("empty", f32({0}), 3), one_hot("large", f32({129}), 67),
             batch_of(5, one_hot("full_rows", rows_f32({5}), 3)),
             batch_of(3, one_hot("partial_rows", rows_f32({5}), 3)),  // class 0 of the rows past the batch is 0 too
             batch_of(3, one_hot("partial_rows_matrix", rows_f32({5, 2}), 3)),
             batch_of(2, one_hot("partial_double_rows", rows_f32({10}, 2), 3)),
             batch_of(0, one_hot("no_rows", rows_f32({5}), 3))});
}

Sample gather(std::string name, TensorType table, TensorType indices) {
  indices.dtype = DType::i32;
  return {.op = "gather",
          .name = std::move(name),
          .operands = {{table, 0, 9}, {indices, 0, static_cast<double>(table.shape[0])}}};
}

void add_gathers(std::vector<Sample>& list) {
  Sample by_hand = exact(gather("exact_no_such_row", f32({3, 2}), f32({5})), {4, 5, 0, 0, 0, 1, 0, 0, 4, 5});
  by_hand.operands[1].values = {2, 3, 0, -1, 2};
  Sample repeated = gather("gradient_repeated", f32({4, 3}), f32({6}));
  repeated.operands[1].values = {1, 3, 1, 1, 0, 3};
  Sample unknown = gather("gradient_no_such_row", f32({3, 2}), f32({3}));
  unknown.operands[1].values = {-1, 2, 3};
  add(list, {by_hand,
             gather("scalar", f32({5, 3}), f32({})),
             gather("vector", f32({5, 3}), f32({7})),
             gather("matrix", f32({5, 3}), f32({2, 4})),
             gather("column", f32({5, 1}), f32({7})),
             gather("one_row", f32({1, 3}), f32({4})),
             gather("no_width", f32({5, 0}), f32({4})),
             gather("empty", f32({5, 3}), f32({0})),
             gather("large", f32({129, 65}), f32({67})),
             batch_of(5, gather("full_rows", f32({4, 3}), rows_f32({5}))),
             batch_of(3, gather("partial_rows", f32({4, 3}), rows_f32({5}))),  // zeros past the batch, not row 0
             batch_of(3, gather("partial_rows_matrix", f32({4, 3}), rows_f32({5, 2}))),
             batch_of(2, gather("partial_double_rows", f32({4, 3}), rows_f32({10}, 2))),
             batch_of(0, gather("no_rows", f32({4, 3}), rows_f32({5}))),
             differentiable(repeated),
             differentiable(unknown),
             differentiable(gather("gradient_scalar", f32({3, 2}), f32({}))),
             differentiable(gather("gradient_matrix", f32({4, 2}), f32({2, 3}))),
             differentiable(gather("gradient_no_width", f32({3, 0}), f32({2}))),
             differentiable(batch_of(3, gather("gradient_rows", f32({4, 2}), rows_f32({5})))),
             differentiable(batch_of(3, gather("gradient_rows_matrix", f32({4, 2}), rows_f32({5, 2}))))});
  for (const DType dtype : kMoved) {
    list.push_back(gather(std::string(name_of(dtype)), typed(dtype, {4, 3}), f32({5})));
  }
}

Sample scatter(std::string name, TensorType indices, TensorType updates, std::int64_t rows) {
  indices.dtype = DType::i32;
  return {.op = "scatter_add",
          .name = std::move(name),
          .operands = {{indices, 0, static_cast<double>(rows)}, {updates}},
          .attributes = {{"entries", rows}},
          .tolerance = {.relative = 1e-6}};
}

void add_scatters(std::vector<Sample>& list) {
  Sample by_hand = scatter("exact_no_such_row", f32({6}), f32({6, 2}), 4);
  by_hand.operands[0].values = {2, 4, 0, 2, -1, 2};
  by_hand.operands[1].values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  by_hand.expected = {5, 6, 0, 0, 19, 22, 0, 0};
  Sample partial = batch_of(2, scatter("exact_partial_rows", rows_f32({5}), rows_f32({5, 1}), 3));
  partial.operands[0].values = {1, 1, 0, 0, 0};  // past the batch indices are 0, which is a valid row
  partial.operands[1].values = {1, 2, 4, 8, 16};
  partial.expected = {0, 3, 0};
  Sample one_row = scatter("one_long_row", f32({1500}), f32({1500, 3}), 7);  // longer than a block of any executor
  one_row.operands[0].values = {5};
  one_row.tolerance = {.relative = 1e-5};
  Sample some_of_many =
      batch_of(700, scatter("partial_rows_of_many", rows_f32({1000, 3}), rows_f32({1000, 3, 4}), 50), 1000);
  some_of_many.tolerance = {.relative = 1e-5};
  Sample unknown = scatter("gradient_no_such_row", f32({3}), f32({3, 2}), 2);
  unknown.operands[0].values = {-1, 1, 2};
  add(list, {by_hand,
             partial,
             one_row,
             scatter("scalar", f32({}), f32({3}), 5),
             scatter("vector", f32({7}), f32({7, 3}), 5),
             scatter("matrix", f32({2, 4}), f32({2, 4, 3}), 5),
             scatter("column", f32({7}), f32({7, 1}), 5),
             scatter("no_width", f32({4}), f32({4, 0}), 5),
             scatter("no_rows_of_the_result", f32({4}), f32({4, 3}), 0),
             scatter("empty", f32({0}), f32({0, 3}), 5),
             scatter("wide", f32({37}), f32({37, 261}), 9),
             scatter("few_of_many_rows", f32({67}), f32({67, 16}), 3001),
             scatter("many_places", f32({9001}), f32({9001, 5}), 1203),
             scatter("very_many_places", f32({40000}), f32({40000, 2}), 70001),
             batch_of(5, scatter("full_rows", rows_f32({5}), rows_f32({5, 3}), 4)),
             batch_of(3, scatter("partial_rows", rows_f32({5}), rows_f32({5, 3}), 4)),
             batch_of(3, scatter("partial_rows_matrix", rows_f32({5, 2}), rows_f32({5, 2, 3}), 4)),
             batch_of(2, scatter("partial_double_rows", rows_f32({10}, 2), rows_f32({10, 3}, 2), 4)),
             some_of_many,
             batch_of(0, scatter("no_rows", rows_f32({5}), rows_f32({5, 3}), 4)),
             differentiable(unknown),
             differentiable(scatter("gradient_scalar", f32({}), f32({2}), 3)),
             differentiable(scatter("gradient_repeated", f32({6}), f32({6, 2}), 3)),
             differentiable(scatter("gradient_matrix", f32({2, 3}), f32({2, 3, 2}), 4)),
             differentiable(batch_of(3, scatter("gradient_rows", rows_f32({5}), rows_f32({5, 2}), 4))),
             differentiable(batch_of(3, scatter("gradient_rows_matrix", rows_f32({5, 2}), rows_f32({5, 2, 2}), 4)))});
  list.push_back(scatter("f64", f32({5}), typed(DType::f64, {5, 3}), 4));
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
  for (const TensorType& type : {f32({2, 3}), typed(DType::i32, {6})}) {
    list.push_back(exact(
        {.op = "stop_gradient", .name = type.dtype == DType::i32 ? "classes" : "exact", .operands = {{type, 0, 9}}},
        {0, 1, 2, 3, 4, 5}));
  }
  list.push_back(batch_of(3, {.op = "stop_gradient", .name = "partial_rows", .operands = {{rows_f32({5, 3}), 0, 9}}}));
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
  const auto converted = [&](std::string name, DType from, DType to, std::vector<double> values,
                             std::vector<double> out) {
    list.push_back(cast(std::move(name), typed(from, {static_cast<std::int64_t>(values.size())}), to, values));
    list.back().expected = std::move(out);
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  converted("toward_zero", DType::f32, DType::i32, {1.75, -1.75, 0.5, -0.5}, {1, -1, 0, 0});
  converted("negative_i32", DType::i32, DType::f32, {-7, 16777216}, {-7, 16777216});
  converted("to_float_rounds", DType::f64, DType::f32, {1 + 0x1p-24, 1 + 0x1.8p-24, 1e300, nan},
            {1, 1 + 0x1p-23, inf, nan});
  converted("special_to_f64", DType::f32, DType::f64, {nan, inf, -inf, 0x1p-149}, {nan, inf, -inf, 0x1p-149});
  converted("nonzero_is_true", DType::f32, DType::boolean, {0.25, 0, -3, inf, -0.0, nan}, {1, 0, 1, 1, 0, 1});
  converted("large_u64", DType::u64, DType::f64, {9007199254740992.0, 3}, {9007199254740992.0, 3});
  add_transposes(list);
  add_slices(list);
  add_pads(list);
  add_concats(list);
  add_windows(list);
  add_folds(list);
  add_one_hots(list);
  add_gathers(list);
  add_scatters(list);
  return list;
}

}  // namespace graphrun::test::samples
