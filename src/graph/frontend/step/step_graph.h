// step_graph.h: from a model to its step graph: one phase each for training, for evaluation of every split, and for
// prediction. Training is nothing special afterwards: minibatch, forward, loss, gradients, optimizer, records are
// nodes. Contract: the batch is a symbol in every phase, so one step graph is compiled with any; what the host has to
// know with it is set by set_capacity(). Observed scalars go into rings (record), element (step mod ring size) for each
// step; the host combines them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/frontend/library/metrics.h"
#include "graph/frontend/step/metric_parts.h"
#include "graph/ir/graph.h"
#include "graphrun/batches.h"
#include "graphrun/model.h"

namespace graphrun {

// A number of which each step records one.
struct RecordedPart {
  ir::NodeId ring = ir::kNoNode;
  Combined how = Combined::sum;
};

struct Recorded {
  std::string name;  // "loss", an objective's, or a metric's
  ir::NodeId ring = ir::kNoNode;
  // Not empty: what is computed from the parts of all batches by formulas[formula]; there is no ring then.
  std::vector<RecordedPart> parts = {};
  std::size_t formula = 0;
  double unit = 1;  // what the mean is multiplied by, before it is finished
  MetricDef::Finish finish = MetricDef::Finish::none;
  double variance = 0;  // of the target over the split, in original units; for Finish::r2. NaN: of one row
  // Not null: neither ring nor parts; it is a score of the output that answers `target`.
  const MetricDef* score = nullptr;
  std::string target = {};
};

struct StepPhase {
  std::string name;                     // of the graph's phase of the same index
  std::string split = {};               // whose rows it reads; empty for prediction
  Batches batches = {};                 // of the split; none for prediction
  std::int64_t ring = 0;                // elements of each ring
  bool rows_vary = false;               // of the split: `batches` is for all of its rows until Session::set_rows()
  ir::NodeId counter = ir::kNoNode;     // of finished steps; prediction has none
  std::vector<Recorded> recorded = {};  // loss first, then that of each objective, where there are several
  std::string needs_one_batch = {};     // why this phase has no metrics where the split is several; empty: it has
  // prediction only:
  std::vector<std::pair<std::string, ir::NodeId>> inputs = {};  // by input name, rows past the count zero
  ir::NodeId count = ir::kNoNode;                               // i32: rows that are valid
  std::vector<ir::NodeId> outputs = {};                         // in the model's order
};

struct StepGraph {
  ir::Graph graph;
  std::vector<StepPhase> phases;
  // States that start from something other than zero; parameters by the model's Init are named here.
  std::vector<std::pair<std::string, ir::NodeId>> data;  // "data/train/x": the node to fill with the split's column
  std::vector<std::pair<std::string, ir::NodeId>> parameters;
  std::vector<MetricFormula> formulas;                 // that evaluations need
  std::vector<std::pair<ir::NodeId, double>> runtime;  // f32 states that the host may write, and their first values
  std::vector<std::pair<std::string, ir::NodeId>>
      rows;                            // by split: u64, how many of its rows are in use, where they vary
  ir::NodeId lr_factor = ir::kNoNode;  // f32 state, from 1 on, which the host may change; TrainSpec::lr_plateau
};

inline constexpr std::int64_t kRingSize = 4096;  // steps between two looks of the host, at most

// The metric from the mean of its records over the split.
double finished(const Recorded& recorded, double mean);

StepGraph build_step_graph(const Model& model);

// For each phase. Throws Error for a metric that several batches would change.
void set_capacity(StepGraph& step, std::int64_t capacity);

}  // namespace graphrun
