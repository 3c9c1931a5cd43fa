// phase_choices.h: specializes a model's graph for training or for the other phases.
// Contract: node ids, types and names stay the same. Each in_training(x, otherwise) is replaced by the side that the
// phase selects. step_graph.h defines the phases.
#pragma once

#include "graph/builder.h"

namespace graphrun {

bool has_phase_choices(const ir::Builder& model);
ir::Graph with_phase_choices(const ir::Builder& model, bool training);

}  // namespace graphrun
