// objectives.h: the training objectives of a model: the single loss of `train.minimize`, or the list of objectives.
// Contract: the model's values are from its own builder. step_graph.h adds the gradients and updates.
#pragma once

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graphrun/model.h"

namespace graphrun {

struct Objective {
  std::string name;  // empty for the single loss
  ir::NodeId loss = ir::kNoNode;
  std::vector<ir::NodeId> parameters;
  const OptimizerSpec* optimizer = nullptr;
  std::int64_t every = 1;  // steps per parameter update
};

std::vector<Objective> objectives_of(const Model& model);  // in order; empty if the model is not trained

}  // namespace graphrun
