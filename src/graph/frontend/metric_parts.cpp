#include "graph/frontend/metric_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "graph/builder.h"
#include "graph/ops/make.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

using ir::Graph;
using ir::kNoNode;
using ir::Node;
using ir::NodeId;

constexpr std::int64_t kMostNumbers = 64;  // of the parts of one metric: each has a ring

bool is_sample_count(const Graph& graph, NodeId id) {
  return graph[id].op == Op::cast && graph[id].inputs[0] == graph.phases[0].row_count;
}

// What reduces rows to none; nothing for an op whose batches do not add up to the whole.
std::optional<Combined> combined_by(const Node& node) {
  if (node.op == Op::sum || node.op == Op::matmul) return Combined::sum;
  if (node.op == Op::prod) return Combined::product;
  if (node.op == Op::max) return Combined::max;
  if (node.op == Op::min) return Combined::min;
  if (node.op == Op::logsumexp) return Combined::logsumexp;
  return std::nullopt;
}

std::vector<bool> ancestors(const Graph& graph, std::span<const NodeId> roots) {
  std::vector<bool> found(graph.size(), false);
  for (const NodeId id : roots) found[id] = true;
  for (NodeId id = graph.size(); id-- > 0;) {
    if (!found[id]) continue;
    for (const NodeId input : graph[id].inputs) found[input] = true;
  }
  return found;
}

class Analysis {
 public:
  Analysis(const Graph& graph, NodeId metric, std::span<const NodeId> roots)
      : graph_(graph), metric_(metric), of_model_(ancestors(graph, roots)) {
    const std::size_t n = metric + std::size_t{1};
    of_batch_.assign(n, false);
    couples_.assign(n, kNoNode);
    form_.assign(n, Form::constant);
    for (NodeId id = 0; id <= metric; ++id) look_at(id);
  }

  MetricParts run() {
    MetricParts found;
    if (graph_[metric_].type.rows > 0 || graph_[metric_].type.shape.rank() > 0) {
      found.is_mean = true;  // no scalar: whoever records it says so
      return found;
    }
    std::vector<bool> needed(metric_ + std::size_t{1}, false);
    needed[metric_] = true;
    for (NodeId id = metric_ + 1; id-- > 0 && found.problem.empty();) {
      if (needed[id]) look_into(id, needed, found);
    }
    std::reverse(found.parts.begin(), found.parts.end());
    found.is_mean = found.problem.empty() && (form_[metric_] == Form::mean || form_[metric_] == Form::constant);
    if (found.is_mean || !found.problem.empty()) return found;
    std::int64_t numbers = 0;
    for (const MetricPart& part : found.parts) numbers += graph_[part.node].type.shape.elements();
    if (numbers > kMostNumbers) {
      found.problem = fmt::format("it is computed from {} numbers of each batch, {} at most are put together", numbers,
                                  kMostNumbers);
    }
    return found;
  }

 private:
  // How a value without rows grows with the batch.
  enum class Form { constant, count, sum, mean, other };

  bool has_rows(NodeId id) const { return graph_[id].type.rows > 0; }
  bool reduces_rows(const Node& node) const {
    return node.type.rows == 0 &&
           std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId i) { return has_rows(i); });
  }

  void look_at(NodeId id) {
    const Node& node = graph_[id];
    of_batch_[id] = node.type.rows > 0 || is_sample_count(graph_, id);
    for (const NodeId input : node.inputs) {
      of_batch_[id] = of_batch_[id] || of_batch_[input];
      if (couples_[input] != kNoNode) couples_[id] = couples_[input];
      const bool meets = node.type.rows > 0 || reduces_rows(node);
      if (meets && !has_rows(input) && of_batch_[input]) couples_[id] = input;
    }
    if (of_model_[id] && node.type.rows > 0) couples_[id] = kNoNode;
    if (of_batch_[id] && node.type.rows == 0) form_[id] = form_of(id);
  }

  Form form_of(NodeId id) const {
    const Node& node = graph_[id];
    if (is_sample_count(graph_, id)) return Form::count;
    if (reduces_rows(node)) return combined_by(node) == Combined::sum ? Form::sum : Form::other;
    std::vector<Form> of;
    for (const NodeId input : node.inputs) of.push_back(form_[input]);
    const Op op = node.op;
    if (op == Op::div && of[1] == Form::constant) return of[0];
    if (op == Op::div && of[0] == Form::sum && of[1] == Form::count) return Form::mean;
    if (op == Op::mul && (of[0] == Form::constant || of[1] == Form::constant)) {
      return of[0] == Form::constant ? of[1] : of[0];
    }
    const bool keeps = op == Op::neg || op == Op::reshape || op == Op::transpose || op == Op::slice || op == Op::sum ||
                       (op == Op::cast && is_float(node.type.dtype));
    if (keeps) return of[0];
    if (op != Op::add && op != Op::sub && op != Op::concat) return Form::other;
    const auto all = [&](auto holds) { return std::all_of(of.begin(), of.end(), holds); };
    if (all([](Form f) { return f == Form::sum; })) return Form::sum;
    if (all([](Form f) { return f == Form::mean || f == Form::constant; })) return Form::mean;
    return Form::other;
  }

  void look_into(NodeId id, std::vector<bool>& needed, MetricParts& found) const {
    const Node& node = graph_[id];
    if (is_sample_count(graph_, id) || node.op == Op::constant) return;
    if (of_batch_[id] && !reduces_rows(node)) {
      for (const NodeId input : node.inputs) needed[input] = true;
      return;
    }
    if (!is_float(node.type.dtype)) {
      found.problem = fmt::format("'{}' is {}, and only floats are put together", node.name, to_string(node.type));
      return;
    }
    if (!of_batch_[id]) {
      found.parts.push_back({id, Combined::same});
      return;
    }
    if (couples_[id] != kNoNode) {
      found.problem = fmt::format("'{}', which is known when all rows have been seen, is used in each row below '{}'",
                                  graph_[couples_[id]].name, node.name);
      return;
    }
    const std::optional<Combined> how = combined_by(node);
    if (how) {
      found.parts.push_back({id, *how});
    } else {
      found.problem =
          fmt::format("no rule says how '{}' ({}) of all rows follows from its batches", node.name, name_of(node.op));
    }
  }

  const Graph& graph_;
  NodeId metric_;
  std::vector<bool> of_model_;
  std::vector<bool> of_batch_;   // depends on rows or their number
  std::vector<NodeId> couples_;  // by node: a value of the whole batch that its rows depend on, beside the model
  std::vector<Form> form_;
};

}  // namespace

MetricParts metric_parts(const Graph& model, NodeId metric, std::span<const NodeId> roots) {
  return Analysis(model, metric, roots).run();
}

MetricFormula metric_formula(const Graph& model, NodeId metric, const std::vector<MetricPart>& parts) {
  MetricFormula formula;
  formula.graph.phases.push_back({"metric", 1, kNoNode});
  ir::Builder make(formula.graph);
  make.enter(0);
  const auto input = [&](const Shape& shape) {
    return make.add("input", {}, {{"dtype", std::string("f64")}, {"shape", make::dims(shape)}});
  };
  std::map<NodeId, NodeId> copied;
  for (const MetricPart& part : parts) {
    formula.parts.push_back(input(model[part.node].type.shape));
    copied.emplace(part.node, formula.parts.back());
  }
  formula.samples = input({});
  std::vector<bool> needed(metric + std::size_t{1}, false);
  needed[metric] = true;
  for (NodeId id = metric + 1; id-- > 0;) {
    if (!needed[id] || copied.contains(id)) continue;
    if (is_sample_count(model, id)) {
      copied.emplace(id, formula.samples);
    } else {
      for (const NodeId i : model[id].inputs) needed[i] = true;
    }
  }
  for (NodeId id = 0; id <= metric; ++id) {
    if (!needed[id] || copied.contains(id)) continue;
    const Node& node = model[id];
    std::vector<NodeId> inputs;
    for (const NodeId i : node.inputs) inputs.push_back(copied.at(i));
    AttrList attrs = node.attrs.list();
    for (auto& [name, value] : attrs) {
      if (name == "dtype" && is_float(node.type.dtype)) value = std::string("f64");
    }
    copied.emplace(id, make.add(name_of(node.op), std::move(inputs), attrs));
  }
  formula.value = copied.at(metric);
  formula.graph[formula.value].keep = true;
  return formula;
}

}  // namespace graphrun
