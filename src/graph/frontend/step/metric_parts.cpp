#include "graph/frontend/step/metric_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "graph/builder.h"
#include "graph/ir/needed.h"
#include "graph/ops/make.h"
#include "graphrun/family_op.h"
#include "graphrun/op.h"
#include "graphrun/scalar_op.h"

namespace graphrun {
namespace {

using ir::Graph;
using ir::kNoNode;
using ir::Node;
using ir::NodeId;

constexpr std::int64_t kMaxNumbers = 64;  // numbers per metric, because each needs a ring buffer

// How results of a reduction over rows combine across batches, like partial results in a region; nullopt if they
// cannot be combined.
std::optional<Combined> combined_by(const Node& node) {
  if (node.op == Op::logsumexp) return Combined::logsumexp;
  const std::optional<CombineOp> combine = traits_of(node.op).combine;
  if (!combine) return std::nullopt;
  constexpr Combined kSame[] = {Combined::sum, Combined::product, Combined::max, Combined::min};  // CombineOp order
  return kSame[static_cast<std::size_t>(*combine)];
}

}  // namespace

bool is_sample_count(const Graph& model, NodeId id) {
  return model[id].op == Op::cast && model[id].inputs[0] == model.phases[0].row_count;
}

MetricAnalysis::MetricAnalysis(const Graph& graph, std::span<const NodeId> roots)
    : graph_(graph),
      of_model_(ir::needed_by(graph, roots)),
      of_batch_(graph.size(), false),
      couples_(graph.size(), kNoNode),
      problems_(graph.size(), kNoNode),
      form_(graph.size(), Form::constant) {
  for (NodeId id = 0; id < graph.size(); ++id) look_at(id);
}

MetricParts MetricAnalysis::parts(NodeId metric) const {
  MetricParts found;
  if (has_rows(metric) || graph_[metric].type.shape.rank() > 0) {
    found.is_mean = true;  // not a scalar: add_ring() reports it
    return found;
  }
  if (problems_[metric] != kNoNode) {
    found.problem = problem_of(problems_[metric]);
    return found;
  }
  found.is_mean = form_[metric] == Form::mean || form_[metric] == Form::constant;
  if (found.is_mean) return found;
  std::int64_t numbers = 0;
  const auto ends = [&](NodeId id) { return role_of(id) != Role::passes_on; };
  for (const NodeId id : ir::needed_nodes(graph_, metric, ends)) {
    if (role_of(id) != Role::part) continue;
    found.parts.push_back({id, of_batch_[id] ? *combined_by(graph_[id]) : Combined::same});
    numbers += graph_[id].type.shape.elements();
  }
  if (numbers > kMaxNumbers) {
    found.problem =
        fmt::format("it is computed from {} numbers of each batch, {} at most are put together", numbers, kMaxNumbers);
  }
  return found;
}

bool MetricAnalysis::reduces_rows(NodeId id) const {
  const Node& node = graph_[id];
  return node.type.rows == 0 &&
         std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId i) { return has_rows(i); });
}

void MetricAnalysis::look_at(NodeId id) {
  const Node& node = graph_[id];
  of_batch_[id] = node.type.rows > 0 || is_sample_count(graph_, id);
  for (const NodeId input : node.inputs) {
    of_batch_[id] = of_batch_[id] || of_batch_[input];
    if (couples_[input] != kNoNode) couples_[id] = couples_[input];
    const bool meets = node.type.rows > 0 || reduces_rows(id);
    if (meets && !has_rows(input) && of_batch_[input]) couples_[id] = input;
  }
  if (of_model_[id] && node.type.rows > 0) couples_[id] = kNoNode;
  if (of_batch_[id] && node.type.rows == 0) form_[id] = form_of(id);
  const Role role = role_of(id);
  if (role == Role::problem) problems_[id] = id;
  if (role != Role::passes_on) return;
  for (const NodeId input : node.inputs) {
    const bool is_later = problems_[id] == kNoNode || problems_[input] > problems_[id];
    if (problems_[input] != kNoNode && is_later) problems_[id] = problems_[input];
  }
}

MetricAnalysis::Form MetricAnalysis::form_of(NodeId id) const {
  const Node& node = graph_[id];
  if (is_sample_count(graph_, id)) return Form::count;
  if (reduces_rows(id)) return combined_by(node) == Combined::sum ? Form::sum : Form::other;
  std::vector<Form> of;
  for (const NodeId input : node.inputs) of.push_back(form_[input]);
  const Op op = node.op;
  if (op == Op::div && of[1] == Form::constant) return of[0];
  if (op == Op::div && of[0] == Form::sum && of[1] == Form::count) return Form::mean;
  if (op == Op::mul && (of[0] == Form::constant || of[1] == Form::constant)) {
    return of[0] == Form::constant ? of[1] : of[0];
  }
  const bool keeps = op == scalar_op::neg || op == Op::reshape || op == family_op::stop_gradient ||
                     op == Op::transpose || op == Op::slice || op == Op::sum ||
                     (op == Op::cast && is_float(node.type.dtype));
  if (keeps) return of[0];
  if (op != Op::add && op != Op::sub && op != Op::concat) return Form::other;
  const auto all = [&](auto holds) { return std::all_of(of.begin(), of.end(), holds); };
  if (all([](Form f) { return f == Form::sum; })) return Form::sum;
  if (all([](Form f) { return f == Form::mean || f == Form::constant; })) return Form::mean;
  return Form::other;
}

MetricAnalysis::Role MetricAnalysis::role_of(NodeId id) const {
  const Node& node = graph_[id];
  if (is_sample_count(graph_, id) || node.op == Op::constant) return Role::known;
  if (of_batch_[id] && !reduces_rows(id)) return Role::passes_on;
  if (!is_float(node.type.dtype)) return Role::problem;
  if (!of_batch_[id]) return Role::part;
  return couples_[id] != kNoNode || !combined_by(node) ? Role::problem : Role::part;
}

std::string MetricAnalysis::problem_of(NodeId id) const {
  const Node& node = graph_[id];
  if (!is_float(node.type.dtype)) {
    return fmt::format("'{}' is {}, and only floats are put together", node.name, to_string(node.type));
  }
  if (couples_[id] != kNoNode) {
    return fmt::format("'{}', which is known when all rows have been seen, is used in each row below '{}'",
                       graph_[couples_[id]].name, node.name);
  }
  return fmt::format("no rule says how '{}' ({}) of all rows follows from its batches", node.name, name_of(node.op));
}

MetricFormula metric_formula(const Graph& model, NodeId metric, const std::vector<MetricPart>& parts) {
  MetricFormula formula;
  formula.graph.phases.push_back({"metric", 1, kNoNode});
  ir::Builder make(formula.graph);
  make.enter(0);
  const auto input = [&](const Shape& shape) { return make::source(make, "input", {DType::f64, shape}).id; };
  std::map<NodeId, NodeId> given;
  for (const MetricPart& part : parts) {
    formula.parts.push_back(input(model[part.node].type.shape));
    given.emplace(part.node, formula.parts.back());
  }
  formula.samples = input({});
  formula.value = ir::copy_as_f64(make, model, metric, [&](NodeId id) {
    const auto part = given.find(id);
    return part != given.end() ? part->second : is_sample_count(model, id) ? formula.samples : kNoNode;
  });
  formula.graph[formula.value].keep = true;
  return formula;
}

}  // namespace graphrun
