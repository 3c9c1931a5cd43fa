// optimizers.h: optimizers as graph fragments: from parameter and gradient to the parameter's next value.
// Contract: PyTorch's equations and names. The memory of an optimizer is its slots, states named
// "<parameter>:<slot>". Optimizers of single parameters also take weight_decay (decoupled: p - lr weight_decay p) and
// l2 (added to the gradient). A new one needs a build function and a row of the table. Defined elsewhere: the learning
// rate over time (schedules.h), the parameters that decay (step_graph.h).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/frontend/library/entry.h"
#include "graph/ops/op_def.h"
#include "graphrun/model.h"

namespace graphrun {

// An attribute as a factor: a number, or a state that the host may write between steps.
struct Factor {
  double number = 0;  // a state starts from it
  Var state = {};

  bool is_state() const { return state.make != nullptr; }
  bool is_zero() const { return !is_state() && number == 0; }  // never changes
  Var of(Var x) const;                                         // x * factor
  Var plus(Var x) const;                                       // x + factor
  Var over(Var x) const;                                       // factor / x
  Factor rest() const;                                         // 1 - factor; f32 if it is a state
};

struct UpdateContext {
  ir::Builder& make;
  const ir::Attrs& attrs;
  Var parameter;
  Var gradient;
  Var lr;                                                // f32 scalar
  Var time;                                              // f32 scalar: this update's number, from 1
  std::map<std::string, Var, std::less<>> runtime = {};  // attributes that are states
  Var due = {};                                          // bool scalar: whether this step updates; null: it does

  Factor factor(std::string_view name) const;  // an attribute
  // A state of the parameter's type that starts at zero.
  Var slot(std::string_view name);
  Var assign(Var slot, Var value) const;  // if an update is due; returns `value`
  Var if_due(Var next, Var otherwise) const;
};

struct OptimizerDef : Entry {
  // The parameter's next value; null: all are updated jointly (bfgs.h, levenberg_marquardt.h).
  Var (*update)(UpdateContext&);
};

const std::vector<OptimizerDef>& optimizers();
bool is_joint(const OptimizerSpec& optimizer);

// The whole update of one parameter: l2, the optimizer, weight decay. `decays`: whether l2 and weight decay apply.
Var update_parameter(const OptimizerDef& optimizer, UpdateContext& context, bool decays);

// Limits each element to ±max_value (torch.nn.utils.clip_grad_value_).
void clip_value(std::vector<Var>& gradients, double max_value);

// Scales gradients by min(1, max_norm / (norm + 1e-6)), with the norm over all of them
// (torch.nn.utils.clip_grad_norm_). A state that is 0 turns this off for the step.
void clip_norm(std::vector<Var>& gradients, const Factor& max_norm);

}  // namespace graphrun
