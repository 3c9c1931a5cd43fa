// levenberg_marquardt.h: the optimizer levenberg_marquardt: one attempt of damped least squares per step.
// Contract: the loss is a sum of w r^2 over residuals r of rows, where w does not depend on the parameters. The attempt
// solves (J^T w J + shift I) d = J^T w r, with shift = damping * max(diag(J^T w J)). It is accepted if the loss of the
// same batch is lower at parameter - d; the gain ratio then sets the next damping (Nielsen 1999). A step with a failed
// Cholesky or a loss that is not a number is rejected: parameters stay and the damping rises.
// Defined elsewhere: the rejected combinations (model_check.cpp), the order of a step (training_phase.cpp).
#pragma once

#include <utility>
#include <vector>

#include "graph/ops/make.h"

namespace graphrun {

// The loss as a sum of squares, linearized at the parameters.
struct NormalEquations {
  ir::NodeId matrix = ir::kNoNode, vector = ir::kNoNode;     // J^T w J (p, p) and J^T w r (p), both with l2
  std::vector<std::pair<ir::NodeId, ir::NodeId>> residuals;  // r^2 and its weight w, each (batch, ...)
};

class LevenbergMarquardt {
 public:
  // `decays`: whether l2 applies, by parameter. `runs`: bool scalar; false freezes parameters and slots.
  LevenbergMarquardt(ir::Builder& make, std::vector<Var> parameters, const std::vector<bool>& decays,
                     const ir::Attrs& attrs, Var runs);  // throws Error for too many, see joint_size()

  // Parameters at the trial point. Throws Error that names an op if the loss is not a sum of squares of rows.
  std::vector<Var> trials(Var loss);
  std::vector<Var> gradients() const;  // derivatives of the loss and its l2 term, by parameter; call after trials()
  // Updates the parameters. Returns a bool: the last 100 steps were rejected.
  Var step(Var loss, Var loss_at_trial);

  struct Number {
    std::string_view name;
    Var state;  // scalar
  };
  const std::vector<Number>& numbers() const { return numbers_; }  // accepted (steps), damping, gradient_norm
  const NormalEquations& equations() const { return equations_; }  // call after trials()

 private:
  Var factor(std::string_view name) const { return make::like(attrs_.real(name), damping_); }
  Var penalty(Var vector) const;

  ir::Builder& make_;
  std::vector<Var> parameters_;
  const ir::Attrs& attrs_;
  Var runs_, damping_, growth_, idle_;
  std::vector<Number> numbers_;
  Var decay_;  // half of l2 by number; null if it is 0
  Var at_, step_, gradient_, shift_, current_damping_;
  NormalEquations equations_;
};

}  // namespace graphrun
