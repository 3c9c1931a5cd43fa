// optimizers.h: optimizers as graph fragments: from parameter and gradient to the parameter's next value.
// Contract: PyTorch's equations and names. An optimizer keeps what it needs in slots, states named
// "<parameter>:<slot>". Every optimizer also takes weight_decay (decoupled: p - lr weight_decay p) and l2 (added to the
// gradient). Adding one is one build function and one row of the table; plan and every executor follow from its parts.
// Leaves to others: the learning rate over time (schedules.h), which parameters decay (step_graph.h).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "graph/frontend/library/entry.h"

namespace graphrun {

// An attribute as a factor: a number, or a state that the host may write between steps.
struct Factor {
  double number = 0;  // of a state: what it starts from
  Var state = {};

  bool is_state() const { return state.make != nullptr; }
  bool is_zero() const { return !is_state() && number == 0; }  // for good
  Var of(Var x) const;                                         // x times it
  Var plus(Var x) const;                                       // x plus it
  Var over(Var x) const;                                       // it by x
  Factor rest() const;                                         // 1 - it; of a state in f32
};

struct UpdateContext {
  ir::Builder& make;
  const ir::Attrs& attrs;
  Var parameter;
  Var gradient;
  Var lr;                                                // f32 scalar
  Var time;                                              // f32 scalar: this update's number, from 1
  std::map<std::string, Var, std::less<>> runtime = {};  // the attributes that are states
  Var due = {};                                          // bool scalar: whether this step moves anything; none: it does

  Factor factor(std::string_view name) const;  // an attribute
  // A state of the parameter's type that starts at zero.
  Var slot(std::string_view name);
  Var assign(Var slot, Var value) const;  // where it is due; gives `value`
  Var if_due(Var next, Var otherwise) const;
};

struct OptimizerDef : Entry {
  Var (*update)(UpdateContext&);  // the parameter's next value
};

const std::vector<OptimizerDef>& optimizers();

// The whole update of one parameter: l2, the optimizer, weight decay. `decays`: whether the last two of those reach it.
Var update_parameter(const OptimizerDef& optimizer, UpdateContext& context, bool decays);

// Scales gradients by min(1, max_norm / (norm + 1e-6)), norm over all of them (torch.nn.utils.clip_grad_norm_); by 1 in
// the steps in which a state is 0.
void clip_norm(std::vector<Var>& gradients, const Factor& max_norm);

}  // namespace graphrun
