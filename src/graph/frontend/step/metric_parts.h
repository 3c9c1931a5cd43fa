// metric_parts.h: how the value of a metric over a whole split follows from its batches.
// Contract: pure functions of the model's graph, which is looked at once for all metrics. A metric is the mean of the
// batches' values where it is linear in means over rows; otherwise its outermost reductions over rows are combined
// batch by batch, exactly, and what is computed from them is a formula of its own. Leaves to others: recording
// (step_graph.h), adding up and evaluating (session/metric_formula.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace graphrun {

// How the values of batches become that of all rows; `same`: the rows have no part in it.
enum class Combined { sum, product, max, min, logsumexp, same };

struct MetricPart {
  ir::NodeId node = ir::kNoNode;
  Combined how = Combined::sum;
};

struct MetricParts {
  bool is_mean = false;           // the mean of the batches' values, by their samples, is the metric
  std::vector<MetricPart> parts;  // otherwise
  std::string problem;            // or why it is neither: a clause for a message
};

// The number of samples of a batch, which a mean over rows divides by.
bool is_sample_count(const ir::Graph& model, ir::NodeId id);

class MetricAnalysis {
 public:
  // `roots`: what the model is for, its outputs and its loss. Where these depend on how rows fall into batches that is
  // the model's meaning, and none of the metric's doing.
  MetricAnalysis(const ir::Graph& graph, std::span<const ir::NodeId> roots);

  MetricParts parts(ir::NodeId metric) const;

 private:
  // How a value without rows grows with the batch.
  enum class Form { constant, count, sum, mean, other };
  enum class Role { passes_on, part, known, problem };  // of a value that a metric is computed from

  bool has_rows(ir::NodeId id) const { return graph_[id].type.rows > 0; }
  bool reduces_rows(ir::NodeId id) const;
  void look_at(ir::NodeId id);
  Form form_of(ir::NodeId id) const;
  Role role_of(ir::NodeId id) const;
  std::string problem_of(ir::NodeId id) const;

  const ir::Graph& graph_;
  std::vector<bool> of_model_;
  // By node:
  std::vector<bool> of_batch_;        // depends on rows or their number
  std::vector<ir::NodeId> couples_;   // a value of the whole batch that its rows depend on, beside the model
  std::vector<ir::NodeId> problems_;  // the last node that keeps a metric of this one from having parts
  std::vector<Form> form_;
};

// The metric from its parts and the number of samples, in f64: one phase without rows.
struct MetricFormula {
  ir::Graph graph;
  std::vector<ir::NodeId> parts;  // inputs, in order
  ir::NodeId samples = ir::kNoNode;
  ir::NodeId value = ir::kNoNode;
};
MetricFormula metric_formula(const ir::Graph& model, ir::NodeId metric, const std::vector<MetricPart>& parts);

}  // namespace graphrun
