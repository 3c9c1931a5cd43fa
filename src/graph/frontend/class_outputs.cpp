#include "graphrun/class_outputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "graph/frontend/builder_impl.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/scalar_op.h"

namespace graphrun {
namespace {

// Logits and targets of all cross-entropies in a graph.
struct CrossEntropies {
  std::set<ir::NodeId> softmax_logits, sigmoid_logits, targets, sigmoid_targets;
};

// Sigmoid cross-entropy is softplus(z) - z * t (functions.cpp): its logits feed a softplus and a product.
CrossEntropies cross_entropies(const ir::Graph& graph) {
  CrossEntropies found;
  std::set<ir::NodeId> softened;
  for (const ir::Node& node : graph.nodes) {
    if (node.op == scalar_op::softplus) softened.insert(node.inputs[0]);
    if (node.op != family_op::softmax_cross_entropy) continue;
    found.softmax_logits.insert(node.inputs[0]);
    found.targets.insert(node.inputs[1]);
  }
  for (const ir::Node& node : graph.nodes) {
    if (node.op != Op::mul) continue;
    for (const auto& [logits, target] : {std::pair{node.inputs[0], node.inputs[1]}, {node.inputs[1], node.inputs[0]}}) {
      if (!softened.contains(logits) || graph[target].op != Op::input) continue;
      found.sigmoid_logits.insert(logits);
      found.targets.insert(target);
      found.sigmoid_targets.insert(target);
    }
  }
  return found;
}

}  // namespace

std::vector<ClassOutput> class_outputs(const Model& model) {
  const GraphBuilder::Impl& impl = model.graph.impl();
  const CrossEntropies found = cross_entropies(impl.graph);
  std::vector<ClassOutput> outputs;
  for (const OutputSpec& spec : model.outputs) {
    ClassOutput& output = outputs.emplace_back();
    if (spec.target.empty()) continue;
    for (const auto& [input, words] : model.data.labels) {
      if (input == spec.target) output.words = words;
    }
    const ir::NodeId id = spec.value.id;
    output.is_class = !output.words.empty() || found.targets.contains(model.graph.find(spec.target).id);
    if (!output.is_class) continue;
    const Shape& shape = impl.graph[id].type.shape;
    const std::int64_t width = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
    output.is_multi_label = width > 1 && output.words.empty() && !found.softmax_logits.contains(id) &&
                            found.sigmoid_targets.contains(model.graph.find(spec.target).id);
    for (const InputColumns& columns : model.data.columns) {
      if (output.is_multi_label && columns.input == spec.target && std::ssize(columns.names) == width)
        output.words = columns.names;
    }
    output.has_threshold = width <= 2 || output.is_multi_label;
    if (found.softmax_logits.contains(id)) output.numbers = ClassOutput::Numbers::softmax_logits;
    if (found.sigmoid_logits.contains(id)) output.numbers = ClassOutput::Numbers::sigmoid_logits;
    for (const FittedStatistic& chosen : model.data.thresholds) {
      if (chosen.name == spec.name) output.thresholds = chosen.values;
    }
  }
  return outputs;
}

std::size_t ClassOutput::class_of(std::span<const float> row) const {
  if (row.size() == 1) return predicts(row, 0) ? 1 : 0;
  if (row.size() == 2 && !thresholds.empty()) return predicts(row, 1) ? 1 : 0;
  return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

std::string ClassOutput::label(std::size_t number) const {
  return number < words.size() ? words[number] : std::to_string(number);
}

bool ClassOutput::predicts(std::span<const float> row, std::size_t k) const {
  if (thresholds.empty()) return row[k] > (numbers == Numbers::sigmoid_logits ? 0.0f : 0.5f);
  const double threshold = thresholds[std::min(k, thresholds.size() - 1)];
  const bool is_joint = numbers == Numbers::softmax_logits && row.size() == 2;
  std::array<double, 2> p{};
  probabilities(is_joint ? row : row.subspan(k, 1), std::span(p).first(is_joint ? 2 : 1));
  return p[is_joint ? k : 0] >= threshold;
}

void ClassOutput::probabilities(std::span<const float> row, std::span<double> to) const {
  std::copy(row.begin(), row.end(), to.begin());
  if (numbers == Numbers::sigmoid_logits) {
    for (double& value : to) value = 1 / (1 + std::exp(-value));
  }
  if (numbers != Numbers::softmax_logits) return;
  const double largest = *std::max_element(to.begin(), to.end());
  double sum = 0;
  for (double& value : to) sum += value = std::exp(value - largest);
  for (double& value : to) value /= sum;
}

void ClassOutput::to_probabilities(std::span<float> row) const {
  std::vector<double> all(row.size());
  probabilities(row, all);
  for (std::size_t k = 0; k < row.size(); ++k) row[k] = static_cast<float>(all[k]);
}

}  // namespace graphrun
