// bfgs.h: the optimizer bfgs: self-scaled BFGS over all parameters, with one evaluation of loss and gradient per step.
// Contract: a parameter holds the last accepted point. The loss and its gradient of a training step are those of the
// trial point, parameter + part of the slot "train:trial". Other phases see the accepted point only.
// Defined elsewhere: the rejected combinations (model_check.cpp), the order of a step (training_phase.cpp).
#pragma once

#include <vector>

#include "graph/ops/op_def.h"

namespace graphrun {

class Bfgs {
 public:
  // `runs`: bool scalar; false freezes parameters and slots.
  Bfgs(ir::Builder& make, std::vector<Var> parameters, Var runs);  // throws Error for too many, see joint_size()

  const std::vector<Var>& trials() const { return trials_; }  // per parameter, for the loss of the step

  struct Result {
    Var loss;    // at the next accepted point
    Var stalls;  // bool: the last 100 steps, restarts included, did not lower the loss
  };
  Result step(Var loss, const std::vector<Var>& gradients);

 private:
  std::vector<Var> parameters_, trials_;
  Var runs_;
  // updated: whether inverse_hessian is in use; 0 until the first update and after a restart. A length of 0 marks a
  // training without an accepted point.
  Var trial_, gradient_, inverse_, updated_, length_, loss_, idle_;
};

}  // namespace graphrun
