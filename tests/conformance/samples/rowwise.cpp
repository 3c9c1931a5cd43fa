// softmax, log_softmax, softmax_cross_entropy: along every axis, far from zero, with infinities and NaN.

#include "conformance/samples.h"

namespace graphrun::test::samples {
namespace {

constexpr double kLog2 = 0.6931471805599453;
constexpr double kLogClasses3[] = {2.4076059644443806, 1.4076059644443806, 0.4076059644443804};  // for targets 1, 2, 3

// The sum of n positive terms and its logarithm have errors of at most n units; x - top, exp and log add a few.
Tolerance tolerance(std::string_view op, std::int64_t n, DType dtype) {
  const double terms = static_cast<double>(n);
  if (op == "softmax") return {terms + 12, 0};
  return {0, (3 * terms + 16) * (dtype == DType::f64 ? 0x1p-53 : 0x1p-24)};
}

Sample along(std::string op, std::string name, TensorType x, std::int64_t axis = -1) {
  const std::int64_t n = x.shape[static_cast<int>(axis < 0 ? axis + x.shape.rank() : axis)];
  const Tolerance allowed = tolerance(op, n, x.dtype);
  return {.op = std::move(op),
          .name = std::move(name),
          .operands = {{x, -4, 4}},
          .attributes = {{"axis", axis}},
          .tolerance = allowed};
}

// Lines of three, and the expected softmax and log_softmax.
struct Lines {
  std::string_view name;
  std::vector<double> x, softmax, log_softmax;
};
const std::vector<Lines>& special() {
  static const std::vector<Lines> list = {
      {"exact",
       {1, 2, 3, 0, 0, -kInf},
       {0.09003057317038046, 0.24472847105479764, 0.6652409557748218, 0.5, 0.5, 0},
       {-kLogClasses3[0], -kLogClasses3[1], -kLogClasses3[2], -kLog2, -kLog2, -kInf}},
      {"without_overflow",
       {1000, 1000, -1000, -2000, -1000, -1000},
       {0.5, 0.5, 0, 0, 0.5, 0.5},
       {-kLog2, -kLog2, -2000 - kLog2, -1000 - kLog2, -kLog2, -kLog2}},
      {"nan_spreads_along_the_axis",
       {1, kNan, 3, 0, -kInf, -kInf},
       {kNan, kNan, kNan, 1, 0, 0},
       {kNan, kNan, kNan, 0, -kInf, -kInf}},
      {"infinite",
       {1, kInf, 3, -kInf, -kInf, -kInf},
       {kNan, kNan, kNan, kNan, kNan, kNan},
       {kNan, kNan, kNan, kNan, kNan, kNan}}};
  return list;
}

void add_along(std::vector<Sample>& list, const std::string& op) {
  const auto make = [&](std::string name, TensorType x, std::int64_t axis = -1) {
    return along(op, std::move(name), x, axis);
  };
  for (Sample& sample :
       std::vector<Sample>{make("vector", f32({7})),
                           make("odd", f32({7, 13})),
                           make("axis_0", f32({7, 13}), 0),
                           make("middle_axis", f32({3, 5, 7}), 1),
                           make("axis_of_one", f32({4, 1}), 1),
                           make("size_one_axes", f32({1, 5, 1}), 1),
                           make("large_last_axis", f32({37, 1031})),
                           make("large_axis_0", f32({1031, 37}), 0),
                           make("empty_axis", f32({3, 0})),
                           make("empty", f32({0, 3})),
                           make("f64", typed(DType::f64, {5, 7})),
                           make("rows_always_full", rows_f32({1, 3})),
                           batch_of(5, make("full_rows", rows_f32({5, 7}))),
                           batch_of(3, make("partial_rows", rows_f32({5, 7}))),
                           batch_of(3, make("partial_rows_middle_axis", rows_f32({5, 2, 3}), 1)),
                           batch_of(2, make("partial_double_rows", rows_f32({10, 3}, 2))),
                           batch_of(300, make("large_partial_rows", rows_f32({400, 11})), 400),
                           batch_of(0, make("no_rows", rows_f32({5, 7}))),
                           differentiable(make("gradient", f32({3, 4}))),
                           differentiable(make("gradient_axis_0", f32({3, 4}), 0)),
                           differentiable(make("gradient_middle_axis", f32({2, 3, 2}), 1)),
                           differentiable(batch_of(3, make("gradient_partial_rows", rows_f32({5, 3}))))}) {
    list.push_back(std::move(sample));
  }
  for (const Lines& lines : special()) {
    Sample sample = make(std::string(lines.name), f32({2, 3}));
    sample.operands[0].values = lines.x;
    sample.expected = op == "softmax" ? lines.softmax : lines.log_softmax;
    list.push_back(sample);
  }
}

// `classes`: the target holds i32 class indices; otherwise class weights, as in one-hot targets.
Sample entropy(std::string name, TensorType logits, bool classes) {
  const std::int64_t n = logits.shape[logits.shape.rank() - 1];
  TensorType target = logits;
  if (classes) {
    target = typed(DType::i32, {}, logits.rows);
    for (int axis = 0; axis + 1 < logits.shape.rank(); ++axis) target.shape.push_back(logits.shape[axis]);
  }
  return {.op = "softmax_cross_entropy",
          .name = std::move(name) + (classes ? "_classes" : ""),
          .operands = {{logits, -4, 4}, {target, 0, classes ? static_cast<double>(n) : 1}},
          .tolerance = tolerance("softmax_cross_entropy", n, logits.dtype)};
}

void add_entropies(std::vector<Sample>& list, bool classes) {
  const auto make = [&](std::string name, TensorType logits) { return entropy(std::move(name), logits, classes); };
  for (Sample& sample : std::vector<Sample>{
           make("vector", f32({7})), make("odd", f32({7, 13})), make("rank_three", f32({3, 5, 7})),
           make("one_class", f32({4, 1})), make("large", f32({37, 1031})), make("empty", f32({0, 3})),
           make("f64", typed(DType::f64, {5, 7})), batch_of(5, make("full_rows", rows_f32({5, 7}))),
           batch_of(3, make("partial_rows", rows_f32({5, 7}))),
           batch_of(3, make("partial_rows_rank_three", rows_f32({5, 2, 3}))),
           batch_of(2, make("partial_double_rows", rows_f32({10, 3}, 2))),
           batch_of(300, make("large_partial_rows", rows_f32({400, 11})), 400),
           batch_of(0, make("no_rows", rows_f32({5, 7}))), differentiable(make("gradient", f32({3, 4}))),
           differentiable(make("gradient_vector", f32({4}))),
           differentiable(make("gradient_rank_three", f32({2, 2, 3}))),
           differentiable(batch_of(3, make("gradient_partial_rows", rows_f32({5, 3}))))}) {
    list.push_back(std::move(sample));
  }
  // Lines of three logits, the target of each line, and the loss.
  struct Line {
    double x[3], one_hot[3];
    double number, loss;
  };
  const auto exact = [&](std::string name, const std::vector<Line>& lines) {
    const auto n = static_cast<std::int64_t>(lines.size());
    Sample sample = make(std::move(name), f32({n, 3}));
    for (Operand& operand : sample.operands) operand.values.clear();
    for (const Line& line : lines) {
      std::vector<double>& target = sample.operands[1].values;
      sample.operands[0].values.insert(sample.operands[0].values.end(), line.x, line.x + 3);
      if (classes) target.push_back(line.number);
      if (!classes) target.insert(target.end(), line.one_hot, line.one_hot + 3);
      sample.expected.push_back(line.loss);
    }
    list.push_back(sample);
  };
  exact("exact", {{{1, 2, 3}, {1, 0, 0}, 0, kLogClasses3[0]},
                  {{1, 2, 3}, {0, 0, 1}, 2, kLogClasses3[2]},
                  {{0, 0, -kInf}, {0, 1, 0}, 1, kLog2},
                  {{-kInf, -kInf, 7}, {0, 0, 1}, 2, 0}});
  exact("without_overflow", {{{1000, 1000, -1000}, {1, 0, 0}, 0, kLog2},
                             {{1000, 1000, -1000}, {0, 0, 1}, 2, 2000 + kLog2},
                             {{-1000, -1000, -2000}, {0, 1, 0}, 1, kLog2}});
  exact("special", {{{1, kNan, 3}, {1, 0, 0}, 0, kNan},
                    {{1, kInf, 3}, {0, 1, 0}, 1, kNan},
                    {{1, -kInf, 1}, {0, 1, 0}, 1, kInf},
                    {{-kInf, -kInf, -kInf}, {1, 0, 0}, 0, kNan}});
  if (classes) {
    exact("no_such", {{{1, 2, 3}, {}, -1, kNan}, {{1, 2, 3}, {}, 3, kNan}, {{1, 2, 3}, {}, 1, kLogClasses3[1]}});
  } else {
    exact("weights", {{{1, 2, 3}, {0.5, 0, 0.25}, 0, 0.5 * kLogClasses3[0] + 0.25 * kLogClasses3[2]},
                      {{1, 2, 3}, {0, 0, 0}, 0, 0},
                      {{1, 2, 3}, {0, kNan, 0}, 0, kNan}});
    list.push_back(entropy("no_classes", f32({2, 0}), false));
    list.back().operands[1].values = {1};
    list.back().expected = {0, 0};
  }
}

}  // namespace

std::vector<Sample> rowwise() {
  std::vector<Sample> list;
  add_along(list, "softmax");
  add_along(list, "log_softmax");
  add_entropies(list, false);
  add_entropies(list, true);
  return list;
}

}  // namespace graphrun::test::samples
