// step_builder.h: a step graph under construction, and what its phases share: states, data, minibatches, copies of the
// model's nodes, and records.
// Contract: parameters keep their names, other model nodes are "phase/name", data is "data/split/input". Names of nodes
// that the library adds have a colon ("train/W1:gradient"). Model names have neither '/' nor ':'.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/step/step_graph.h"
#include "graph/ops/make.h"

namespace graphrun {

class StepBuilder {
 public:
  explicit StepBuilder(const Model& of);

  const Model& model;
  const GraphBuilder::Impl& source;  // the model's graph
  const std::vector<ObjectiveSpec> objectives;
  StepGraph result;
  ir::Builder make{result.graph};
  const ir::Graph in_training, otherwise;  // the model's graph with the choices of the phase (with_phase_choices())
  std::vector<ir::NodeId> copied;          // node in the current phase, indexed by model node
  ir::NodeId counter = ir::kNoNode;
  std::string turn;  // name suffix for nodes of the current objective; empty for the first

  Var var(ir::NodeId id) { return {&make, id}; }
  ir::Graph& graph() { return result.graph; }
  const ir::Graph& specialized() const;  // the one of the two graphs for the current phase
  // The graph is built in f32 and widened at the end.
  bool is_wide() const { return model.train.precision == Precision::fp64; }

  ir::NodeId add_named(const std::string& name, Var node);
  ir::NodeId add_input(const std::string& name, const TensorType& type);
  ir::NodeId add_state(const std::string& name, const TensorType& type, std::string_view kind);
  ir::NodeId add_slot(const std::string& name) { return add_state(name, {DType::f32, {}, 0}, "slot"); }

  void add_data(const Split& split);
  StepPhase& start_phase(StepPhase phase);
  // Starts a phase over the rows of a split: adds counter and row count, and binds the model's inputs to minibatches.
  StepPhase& enter_split(const std::string& name, const Split& split);
  void finish_split() { make.add("assign", {counter, make.add("increment", {counter})}); }

  // The step graph's node for a node of the model in the current phase; created on first use.
  ir::NodeId copy(ir::NodeId wanted);
  Var copy_var(ir::NodeId wanted) { return var(copy(wanted)); }

  ir::NodeId add_ring(const StepPhase& phase, const std::string& name, ir::NodeId value);
  Recorded& add_record(StepPhase& phase, const std::string& name, ir::NodeId value);

 private:
  void add_column(const Split& split, const std::string& column, TensorType type);
  void add_state_of_data(const std::string& name, const TensorType& type);
  Var gather_windows(const WindowedInput& windows, Var first, ir::NodeId data);
  std::int64_t stream_key(std::string_view name) const;
  ir::NodeId copy_node(ir::NodeId id, const std::string& phase);

  std::map<std::string, ir::NodeId> data_;
};

void add_training(StepBuilder& step, const Split& split);
void add_evaluations(StepBuilder& step);  // every split

}  // namespace graphrun
