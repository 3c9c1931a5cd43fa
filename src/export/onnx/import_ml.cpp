// Ops of the domain ai.onnx.ml that scikit-learn's exporter writes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "export/onnx/import_ops.h"
#include "graphrun/elements.h"

namespace graphrun::onnx {
namespace {

// Numbers of a list attribute, as a constant.
GraphValue constant_list(const Call& call, const char* name, List shape) {
  const Attribute* one = call.node.find(name);
  const std::size_t count = one == nullptr ? 0 : one->floats.size();
  if (static_cast<std::int64_t>(count) != elements_of(shape))
    throw Rejection{fmt::format("its {} do not fit its input", name)};
  return constant_of(call.node.outputs[0] + "_" + name, DType::f32, std::move(shape),
                     {one->floats.begin(), one->floats.end()});
}

std::int64_t columns(const Call& call) {
  if (call.rank() != 2 || call.x().dtype != DType::f32) throw Rejection{"its input is not f32 (batch, columns)"};
  return call.x().shape[1];
}

GraphValue scaler(Call& call) {
  const std::int64_t width = columns(call);
  const auto list = [&](const char* name) {
    const Attribute* one = call.node.find(name);
    const GraphValue value = constant_list(call, name, {one != nullptr && one->floats.size() == 1 ? 1 : width});
    value.constant->trainable = false;
    return value;
  };
  return call.graph.apply("(x - y) * z", {call.x(), list("offset"), list("scale")});
}

GraphValue normalizer(Call& call) {
  columns(call);
  const std::string norm = call.word("norm", "MAX");
  if (norm != "L1" && norm != "L2") throw Rejection{"its norm is MAX, which programs compute differently"};
  const GraphValue x = call.graph.named(call.x());
  const GraphValue size =
      call.graph.reduce("sum", call.graph.apply(norm == "L2" ? "square(x)" : "abs(x)", {x}), {1}, true);
  return call.graph.apply(norm == "L2" ? "where(y == 0, x, x / sqrt(y))" : "where(y == 0, x, x / y)", {x, size});
}

// x @ transpose(coefficients) + intercepts
GraphValue linear(Call& call, std::int64_t targets) {
  const std::int64_t width = columns(call);
  if (targets < 1) throw Rejection{"it has no targets"};
  const GraphValue weights = call.graph.transpose(constant_list(call, "coefficients", {targets, width}), {1, 0});
  const GraphValue made = call.graph.product(call.x(), weights);
  if (call.node.find("intercepts") == nullptr) return made;
  return call.graph.apply("x + y", {made, constant_list(call, "intercepts", {targets})});
}

GraphValue transformed(Call& call, const GraphValue& scores) {
  const std::string to = call.word("post_transform", "NONE");
  if (to == "NONE") return scores;
  if (to == "LOGISTIC") return call.graph.apply("sigmoid(x)", {scores});
  if (to == "SOFTMAX") return call.graph.call("softmax", scores, 1);
  throw Rejection{fmt::format("its post_transform {} is not supported", to)};
}

// Integer labels of class indices (batch): a lookup for labels other than 0, 1, 2 ...
GraphValue labels_of(Graph& graph, const GraphValue& indices, const std::vector<double>& labels,
                     const std::string& name) {
  bool counts = true;
  for (std::size_t i = 0; i < labels.size(); ++i) counts = counts && labels[i] == static_cast<double>(i);
  if (counts) return indices;
  if (std::any_of(labels.begin(), labels.end(), [](double label) { return std::abs(label) > 1e7; }))
    throw Rejection{"it has labels above 10,000,000"};
  const HostTensor table = from_doubles(labels, {DType::f32, Shape{static_cast<std::int64_t>(labels.size()), 1}, 0});
  GraphValue found{"", indices.shape, DType::i32, indices.by_sample};
  found.text = fmt::format("cast(reshape(gather({}, {}), shape=[{}]), dtype=i32)", graph.parameter(name, table, false),
                           graph.text(indices), graph.extents(indices, indices.shape));
  return found;
}

GraphValue linear_classifier(Call& call) {
  const Attribute* given = call.node.find("classlabels_ints");
  const Attribute* words = call.node.find("classlabels_strings");
  const auto classes = static_cast<std::int64_t>(given != nullptr && !given->ints.empty() ? given->ints.size()
                                                 : words != nullptr                       ? words->strings.size()
                                                                                          : 0);
  const std::int64_t width = columns(call);
  const Attribute* coefficients = call.node.find("coefficients");
  const std::int64_t targets =
      coefficients == nullptr || width < 1 ? 0 : static_cast<std::int64_t>(coefficients->floats.size()) / width;
  if (classes < 2 || (targets != classes && !(classes == 2 && targets == 1)))
    throw Rejection{"its coefficients do not fit its classes"};
  GraphValue scores = call.graph.named(linear(call, targets));
  if (targets == 1) {
    // One score for two classes: the second one's.
    const bool logistic = call.word("post_transform", "NONE") == "LOGISTIC";
    if (!logistic) throw Rejection{"it has one score for two classes"};
    const GraphValue second = call.graph.named(call.graph.apply("sigmoid(x)", {scores}));
    scores = call.graph.concat({call.graph.apply("1 - x", {second}), second}, 1);
  } else {
    scores = transformed(call, scores);
  }
  scores = call.graph.named(scores);
  call.more.emplace_back(1, scores);
  if (!call.wants(0)) return scores;
  GraphValue label = call.graph.call("argmax", scores, 1);
  label.dtype = DType::i32, label.trained = false, label.shape.pop_back();
  if (given == nullptr || given->ints.empty()) return label;
  return labels_of(call.graph, label, {given->ints.begin(), given->ints.end()}, call.node.outputs[0] + "_labels");
}

// Picks elements along the last axis. Labels at computed indices (batch, 1) are (1, batch), which only Reshape reads.
GraphValue array_feature_extractor(Call& call) {
  const GraphValue &x = call.x(), &indices = call.x(1);
  if (indices.constant && indices.dtype == DType::i32 && !x.shape.empty()) {
    const std::vector<double> at = numbers_of(indices);
    return call.graph.take(x, call.rank() - 1, {at.begin(), at.end()});
  }
  if (!x.constant || x.dtype != DType::i32 || call.rank() != 1 || indices.shape != List{kAnyRows, 1})
    throw Rejection{"its indices are not constant"};
  GraphValue label = labels_of(call.graph, call.graph.reshape(indices, {kAnyRows}), numbers_of(x), x.constant->name);
  label = call.graph.named(label);
  label.shape = {1, kAnyRows};
  return label;
}

GraphValue binarizer(Call& call) {
  return call.graph.apply(fmt::format("where(x > {}, 1, 0)", call.number("threshold", 0)), {call.x()});
}

}  // namespace

Rules machine_learning_rules() {
  const std::string ml = kMlDomain;
  return {
      {"Scaler", 1, 1, scaler, ml},
      {"Normalizer", 1, 1, normalizer, ml},
      {"LinearRegressor", 1, 1, [](Call& call) { return transformed(call, linear(call, call.integer("targets", 1))); },
       ml},
      {"LinearClassifier", 1, 1, linear_classifier, ml},
      {"ArrayFeatureExtractor", 2, 2, array_feature_extractor, ml},
      {"Binarizer", 1, 1, binarizer, ml},
      {"ZipMap", 1, 1, [](Call& call) { return call.x(); }, ml},
  };
}

}  // namespace graphrun::onnx
