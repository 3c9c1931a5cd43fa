// step_graph.cpp: the phases of a step graph in order, the prediction, and the values that the host reads.
#include "graph/frontend/step/step_graph.h"

#include <algorithm>
#include <cmath>

#include "graph/frontend/model_check.h"
#include "graph/frontend/step/step_builder.h"
#include "graph/ir/needed.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

using ir::NodeId;

void add_prediction(StepBuilder& step) {
  StepPhase& predict = step.start_phase({.name = "predict"});
  std::vector<NodeId> outputs;
  for (const OutputSpec& output : step.model.outputs) outputs.push_back(output.value.id);
  const std::vector<bool> is_needed = ir::needed_by(step.specialized(), outputs);
  for (NodeId input : step.source.inputs) {
    if (!is_needed[input]) continue;  // a target (see "outputs" in model-format.md)
    const std::string& name = step.source.graph[input].name;
    step.copied[input] = step.add_input("predict/" + name, step.source.graph[input].type);
    predict.inputs.emplace_back(name, step.copied[input]);
  }
  step.copied[step.source.step] = step.make.scalar(0, DType::u64);  // same random samples in every prediction
  predict.count = step.add_input("predict/batch:count", {DType::i32, {}, 0});
  step.graph().phases.back().row_count = predict.count;
  for (const OutputSpec& output : step.model.outputs) {
    predict.outputs.push_back(step.copy(output.value.id));
    step.graph()[predict.outputs.back()].keep = true;
  }
}

}  // namespace

double finished(const Recorded& recorded, double mean) {
  mean *= recorded.unit;
  switch (recorded.finish) {
    case MetricDef::Finish::none:
      return mean;
    case MetricDef::Finish::root:
      return std::sqrt(mean);
    case MetricDef::Finish::r2:
      // For a constant target, R² is defined as 1 for exact predictions and 0 otherwise.
      return recorded.variance != 0 ? 1 - mean / recorded.variance : mean == 0 ? 1 : 0;
  }
  return mean;
}

void set_capacity(StepGraph& step, std::int64_t capacity) {
  for (StepPhase& phase : step.phases) {
    phase.batches.capacity = capacity;
    const std::int64_t batches = phase.batches.count();
    const bool is_sized = phase.name != "train" && !phase.rows_vary;
    phase.ring = is_sized ? std::clamp<std::int64_t>(batches, 1, kRingSize) : kRingSize;
    if (batches <= 1 || phase.needs_one_batch.empty()) continue;
    if (phase.name == "train") {
      throw Error(ErrorKind::input, "optimizer.batches", phase.needs_one_batch, R"("batch": "all" in "train")");
    }
    throw Error(ErrorKind::input, "metric.batches", phase.needs_one_batch,
                "write it with sums and means of rows, as mean(square(y)) - mean(y)^2 for the variance, or let a batch "
                "hold the whole split");
  }
}

std::vector<ObjectiveSpec> objectives_of(const Model& model) {
  const GraphBuilder::Impl& graph = model.graph.impl();
  const TrainSpec& train = model.train;
  for (const ObjectiveSpec& one : train.objectives) {
    graph.node(one.minimize);  // throws Error for a value of another builder
    for (const Value parameter : one.parameters) graph.node(parameter);
  }
  if (!train.objectives.empty() || !train.minimize.valid()) return train.objectives;
  const ir::NodeId loss = graph.node(train.minimize);
  const std::vector<bool> reached = ir::needed_by(graph.graph, {&loss, 1});
  ObjectiveSpec only{"", train.minimize, {}, train.optimizer};
  for (const ir::NodeId id : graph.trainable()) {
    if (reached[id]) only.parameters.push_back(graph.value(id));
  }
  return {only};
}

ir::Graph with_phase_choices(const ir::Builder& model, bool training) {
  ir::Graph graph = model.graph();
  const ir::NodeId flag = model.training_or_none();
  for (ir::Node& node : graph.nodes) {
    if (node.op != Op::where || node.inputs[0] != flag) continue;
    // Replaces the choice by the selected side: a reshape to the same shape, which is a differentiable view, or a
    // broadcast if the choice would broadcast that side.
    node.inputs = {node.inputs[training ? 1 : 2]};
    const TensorType& side = graph[node.inputs[0]].type;
    const bool is_whole = side.shape == node.type.shape && side.rows == node.type.rows;
    node.op = is_whole ? Op::reshape : Op::broadcast_to;
    node.def = &op_def(node.op);
    AttrList attrs = {{"shape", make::dims(node.type.shape)}};
    if (!is_whole) attrs.emplace_back("rows", node.type.rows);
    node.attrs = ir::Attrs(node.def->attrs, attrs);
  }
  return graph;
}

StepGraph build_step_graph(const Model& model) {
  check_usable(model);
  StepBuilder step(model);
  for (const Split& split : model.data.splits) step.add_data(split);
  const Split* const train = model.data.find("train");
  if (!step.objectives.empty() && train != nullptr) add_training(step, *train);
  if (!step.objectives.empty()) add_evaluations(step);
  if (!model.outputs.empty()) add_prediction(step);
  if (step.is_wide()) ir::widen(step.graph());
  return std::move(step.result);
}

}  // namespace graphrun
