// optimizers.h: optimizers as graph fragments: from parameter and gradient to the parameter's next value.
// Contract: PyTorch's equations and names. An optimizer keeps what it needs in slots, states named
// "<parameter>:<slot>". Every optimizer also takes weight_decay (decoupled: p - lr weight_decay p) and l2 (added to the
// gradient). Adding one is one build function and one row of the table; plan and every executor follow from its parts.
// Leaves to others: the learning rate over time (schedules.h), which parameters decay (step_graph.h).
#pragma once

#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "graph/frontend/library/entry.h"

namespace graphrun {

struct UpdateContext {
  ir::Builder& make;
  const ir::Attrs& attrs;
  Var parameter;
  Var gradient;
  Var lr;    // f32 scalar
  Var time;  // f32 scalar: this step's number, from 1

  // A state of the parameter's type that starts at zero.
  Var slot(std::string_view name);
  static Var assign(Var slot, Var value);  // gives `value`
};

struct OptimizerDef : Entry {
  Var (*update)(UpdateContext&);  // the parameter's next value
};

const std::vector<OptimizerDef>& optimizers();

// The whole update of one parameter: l2, the optimizer, weight decay. `decays`: whether the last two of those reach it.
Var update_parameter(const OptimizerDef& optimizer, UpdateContext& context, bool decays);

// Scales gradients by min(1, max_norm / (norm + 1e-6)), norm over all of them (torch.nn.utils.clip_grad_norm_).
void clip_norm(std::vector<Var>& gradients, double max_norm);

}  // namespace graphrun
