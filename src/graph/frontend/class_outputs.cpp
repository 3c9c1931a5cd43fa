#include "graphrun/class_outputs.h"

#include <algorithm>
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
  std::set<ir::NodeId> softmax_logits, sigmoid_logits, targets;
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
    if (found.softmax_logits.contains(id)) output.numbers = ClassOutput::Numbers::softmax_logits;
    if (found.sigmoid_logits.contains(id)) output.numbers = ClassOutput::Numbers::sigmoid_logits;
  }
  return outputs;
}

std::size_t ClassOutput::class_of(std::span<const float> row) const {
  if (row.size() == 1) return row[0] > (numbers == Numbers::sigmoid_logits ? 0.0f : 0.5f) ? 1 : 0;
  return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

std::string ClassOutput::label(std::size_t number) const {
  return number < words.size() ? words[number] : std::to_string(number);
}

void ClassOutput::to_probabilities(std::span<float> row) const {
  if (numbers == Numbers::sigmoid_logits) {
    for (float& value : row) value = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(value))));
  }
  if (numbers != Numbers::softmax_logits) return;
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float value : row) sum += std::exp(static_cast<double>(value) - largest);
  for (float& value : row) value = static_cast<float>(std::exp(static_cast<double>(value) - largest) / sum);
}

}  // namespace graphrun
