// phase_choices.h: a model's graph as training or the other phases compute it.
// Contract: ids are those of the model's graph, and so are types and names; of in_training(x, otherwise) only the side
// that the phase takes is left. Leaves to others: what phases there are (step_graph.h).
#pragma once

#include "graph/builder.h"

namespace graphrun {

bool has_phase_choices(const ir::Builder& model);
ir::Graph with_phase_choices(const ir::Builder& model, bool training);

}  // namespace graphrun
