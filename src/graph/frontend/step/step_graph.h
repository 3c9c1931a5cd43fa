// step_graph.h: builds the step graph of a model: one phase each for training, for evaluation of every split, and for
// prediction. Later stages treat training like any phase: minibatch, forward, loss, gradients, optimizer and records
// are nodes. Contract: the batch is symbolic in every phase, so a step graph can be compiled for any batch size;
// set_capacity() then sets the fields for the host. Each step records its scalars in ring buffers, at element
// (step mod ring size); the host combines them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "graph/frontend/library/levenberg_marquardt.h"
#include "graph/frontend/library/metrics.h"
#include "graph/frontend/step/metric_parts.h"
#include "graphrun/batches.h"
#include "graphrun/model.h"

namespace graphrun {

struct Recorded {
  std::string name;  // "loss", an objective's, or a metric's
  ir::NodeId ring = ir::kNoNode;
  // If not empty, formulas[formula] computes the value from the parts of all batches, whose nodes are rings; then
  // `ring` is not used.
  std::vector<MetricPart> parts = {};
  std::size_t formula = 0;
  double unit = 1;  // factor of the mean, applied before `finish`
  MetricDef::Finish finish = MetricDef::Finish::none;
  double variance = 0;  // target variance over the split, in original units, for Finish::r2; NaN if one row
  // If not null, there is neither ring nor parts: the host computes this metric from the output that answers `target`.
  const MetricDef* score = nullptr;
  std::string target = {};
};

// Cause that ends training; after the step that sets it, no step changes the model.
enum class StopCause : std::uint8_t { none, loss, no_descent, gradient };

struct StepPhase {
  std::string name;                     // name of the graph phase with the same index
  std::string split = {};               // split that it reads; empty for prediction
  Batches batches = {};                 // batches of the split; empty for prediction
  std::int64_t ring = 0;                // elements per ring
  bool rows_vary = false;               // rows may vary: `batches` counts all until Session::set_rows()
  ir::NodeId counter = ir::kNoNode;     // finished steps; kNoNode for prediction
  std::vector<Recorded> recorded = {};  // loss first, then the objectives if there are several
  ir::NodeId stop_ring = ir::kNoNode;   // training only: records of StepGraph::stop
  std::string needs_one_batch = {};     // why metrics need the split in one batch; empty if they do not
  // prediction only:
  std::vector<std::pair<std::string, ir::NodeId>> inputs = {};  // input name, node; rows past the count are 0
  ir::NodeId count = ir::kNoNode;                               // i32, number of valid rows
  std::vector<ir::NodeId> outputs = {};                         // in the model's order
};

struct StepGraph {
  ir::Graph graph;
  std::vector<StepPhase> phases;
  // States whose initial value is not zero. The model's Init initializes parameters.
  std::vector<std::pair<std::string, ir::NodeId>> data;  // "data/train/x": node to fill with the split's column
  std::vector<std::pair<std::string, ir::NodeId>> parameters;
  std::vector<MetricFormula> formulas;                   // for evaluations
  std::vector<std::pair<ir::NodeId, double>> runtime;    // f32 states that the host may write, and initial values
  std::vector<std::pair<std::string, ir::NodeId>> rows;  // split name, u64 with its rows in use; only if they vary
  ir::NodeId stop = ir::kNoNode;                         // f32 state: the StopCause as a number
  std::vector<std::pair<std::string_view, ir::NodeId>> optimizer;  // scalar states: Session::optimizer_numbers()
  NormalEquations equations;                                       // training step, with levenberg_marquardt
  ir::NodeId lr_factor = ir::kNoNode;  // f32 state (initially 1) that the host changes; TrainSpec::lr_plateau
};

// In order: TrainSpec::objectives, or the single loss of `minimize` as an objective without a name, with the trainable
// parameters that it depends on. Empty if the model is not trained.
std::vector<ObjectiveSpec> objectives_of(const Model& model);

inline constexpr std::int64_t kRingSize = 4096;  // maximum steps between two polls of the host

// Computes the metric from the mean of its records over the split.
double finished(const Recorded& recorded, double mean);

StepGraph build_step_graph(const Model& model);

// A model's graph for training, or for the other phases: each in_training(x, otherwise) is replaced by the side that
// the phase selects. Node ids, types and names stay the same.
ir::Graph with_phase_choices(const ir::Builder& model, bool training);

// Sets the batch size of each phase. Throws Error for a metric whose value would depend on the batches.
void set_capacity(StepGraph& step, std::int64_t capacity);

}  // namespace graphrun
