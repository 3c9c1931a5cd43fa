// metric_parts.h: decomposes a metric so that its value over a whole split can be computed from batches.
// Contract: pure functions of the model's graph, which is analyzed once for all metrics. A metric that is linear in
// means over rows is the mean of the batches' values. Otherwise its outermost reductions over rows are combined
// exactly, batch by batch, and a separate formula computes the metric from them. Done elsewhere: recording
// (step_graph.h), summation and evaluation (session/metric_formula.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace graphrun {

// How batch values combine into the value for all rows; `same`: the value does not depend on rows.
enum class Combined { sum, product, max, min, logsumexp, same };

struct MetricPart {
  ir::NodeId node = ir::kNoNode;
  Combined how = Combined::sum;
};

struct MetricParts {
  bool is_mean = false;           // the metric is the sample-weighted mean of batch values
  std::vector<MetricPart> parts;  // otherwise
  std::string problem;            // reason if it is neither: a clause for a message
};

// Whether the node is the sample count of a batch, the divisor of a mean over rows.
bool is_sample_count(const ir::Graph& model, ir::NodeId id);

class MetricAnalysis {
 public:
  // `roots`: the outputs and losses of the model. If these depend on the composition of batches (as with batch norm),
  // that is the model's semantics and not a problem of the metric.
  MetricAnalysis(const ir::Graph& graph, std::span<const ir::NodeId> roots);

  MetricParts parts(ir::NodeId metric) const;

 private:
  // How a value without rows scales with the batch.
  enum class Form { constant, count, sum, mean, other };
  enum class Role { passes_on, part, known, problem };  // role of an ancestor of a metric

  bool has_rows(ir::NodeId id) const { return graph_[id].type.rows > 0; }
  bool reduces_rows(ir::NodeId id) const;
  void look_at(ir::NodeId id);
  Form form_of(ir::NodeId id) const;
  Role role_of(ir::NodeId id) const;
  std::string problem_of(ir::NodeId id) const;

  const ir::Graph& graph_;
  std::vector<bool> of_model_;
  // Indexed by node:
  std::vector<bool> of_batch_;        // depends on rows or on their number
  std::vector<ir::NodeId> couples_;   // whole-batch value outside the model that rows depend on
  std::vector<ir::NodeId> problems_;  // last ancestor that prevents a split into parts
  std::vector<Form> form_;
};

// Computes the metric from its parts and the sample count, in f64: one phase without rows.
struct MetricFormula {
  ir::Graph graph;
  std::vector<ir::NodeId> parts;  // inputs, in order
  ir::NodeId samples = ir::kNoNode;
  ir::NodeId value = ir::kNoNode;
};
MetricFormula metric_formula(const ir::Graph& model, ir::NodeId metric, const std::vector<MetricPart>& parts);

}  // namespace graphrun
