// objectives.h: what a model is trained for: the one loss of `train.minimize`, or the objectives of a list, in order.
// Contract: of a model whose values are its builder's. Leaves to others: their gradients and updates (step_graph.h).
#pragma once

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graphrun/model.h"

namespace graphrun {

struct Objective {
  std::string name;  // empty where there is one loss
  ir::NodeId loss = ir::kNoNode;
  std::vector<ir::NodeId> parameters;
  const OptimizerSpec* optimizer = nullptr;
  std::int64_t every = 1;  // steps to one that moves the parameters
};

std::vector<Objective> objectives_of(const Model& model);  // none: it is not trained

}  // namespace graphrun
