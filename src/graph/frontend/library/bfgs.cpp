#include "graph/frontend/library/bfgs.h"

#include "graph/frontend/library/flat_vector.h"
#include "graph/ops/make.h"

namespace graphrun {
namespace {

constexpr double kArmijo = 1e-4;      // fraction of the predicted decrease that a step must reach
constexpr double kCurvature = 1e-10;  // skips an update if s.y is at most this times y.y
constexpr double kMinLength = 1e-10;  // a shorter step restarts from the gradient
constexpr double kMaxIdle = 100;      // steps without a lower loss that end training

Var is_zero_scalar(Var x) {
  return make::op("equal", {x, make::like(0, x)});
}
Var column_of(Var x) {
  return make::reshape(x, Shape{x.type().shape[0], 1});
}
Var row_of(Var x) {
  return make::reshape(x, Shape{1, x.type().shape[0]});
}
// matrix @ x, as a vector.
Var product(Var matrix, Var x) {
  const Var column = column_of(x);
  return make::reshape(make::op("matmul", {matrix, column}), x.type().shape);
}

}  // namespace

Bfgs::Bfgs(ir::Builder& make, std::vector<Var> parameters, Var runs) : parameters_(std::move(parameters)), runs_(runs) {
  const std::int64_t size = joint_size("bfgs", parameters_);
  const auto slot = [&](std::string_view name, const Shape& shape) {
    return joint_slot(make, name, {DType::f32, shape, 0});
  };
  trial_ = slot("trial", {size});
  gradient_ = slot("gradient", {size});
  inverse_ = slot("inverse_hessian", {size, size});
  updated_ = slot("updated", {});
  length_ = slot("length", {});
  loss_ = slot("accepted_loss", {});
  idle_ = slot("idle", {});
  each_part(trial_, parameters_,
            [&](Var parameter, Var part) { trials_.push_back(make::op("stop_gradient", {parameter + part})); });
}

Bfgs::Result Bfgs::step(Var loss, const std::vector<Var>& gradients) {
  const Var s = trial_, g = flat(gradients);
  const Var one = make::like(1, loss), zero = make::like(0, loss);
  const Var slope = dot(gradient_, s);
  const Var starts = is_zero_scalar(length_);
  const Var expected = loss_ + slope * kArmijo;
  const Var decreases = make::op("less_equal", {loss, expected});
  const Var accepts = make::op("logical_or", {starts, decreases});
  const Var rejects = negated(accepts);

  // Update of the inverse Hessian with s and y, scaled by 1 / tau = max(1, s.Hs / s.y), where H s = -length * gradient.
  const Var y = g - gradient_;
  const Var sy = dot(s, y), yy = dot(y, y);
  const Var curves = make::op("greater", {sy, yy * kCurvature});
  const Var learns = both(both(decreases, negated(starts)), curves);
  const Var fresh = is_zero_scalar(updated_);
  const Var start = identity_like(s) * (sy / yy);
  const Var base = choose(fresh, start, inverse_);
  const Var By = product(base, y);
  const Var sHs = -(slope * length_);
  const Var stretch = make::op("maximum", {one, sHs / sy});  // 1 / tau
  const Var stretched = stretch / sy;
  const Var half = (one + stretched * dot(y, By)) / (sy * 2.0);
  const Var By_part = By * stretched;
  const Var w = s * half - By_part;
  const Var left = column_of(s) * row_of(w);
  const Var right = column_of(w) * row_of(s);
  const Var learned = base * stretch + (left + right);
  const Var inverse = choose(learns, learned, inverse_);
  const Var updated = choose(learns, one, updated_);

  // Next direction from the accepted point; the negative gradient if the inverse Hessian gives no descent.
  const Var accepted_g = choose(accepts, g, gradient_);
  const Var steepest = -accepted_g;
  const Var newton = choose(is_zero_scalar(updated), steepest, -product(inverse, accepted_g));
  const Var descends = is_below(dot(newton, accepted_g), zero);
  const Var excess = (loss - loss_ - slope) * 2.0;
  const Var minimum = make::op("clip", {-slope / excess}, {{"low", 0.1}, {"high", 0.5}});
  // A loss that is not a number takes the smallest factor.
  const Var shrink = choose(make::op("greater", {excess, zero}), minimum, make::like(0.1, loss));
  const Var shorter = length_ * shrink;
  const Var stalls = both(rejects, is_below(shorter, make::like(kMinLength, loss)));
  const Var misleads = both(accepts, negated(descends));
  const Var restarts = make::op("logical_or", {misleads, stalls});
  const Var next_updated = choose(restarts, zero, updated);
  const Var gradient_length = make::sum(make::op("abs", {accepted_g}), {}, false);
  const Var cautious = make::op("minimum", {one, one / gradient_length});
  const Var full = choose(is_zero_scalar(next_updated), cautious, one);
  const Var after_reject = choose(restarts, cautious * 1e-3, shorter);
  const Var length = choose(accepts, full, after_reject);
  const Var direction = choose(restarts, steepest, newton);
  const Var searches = both(rejects, negated(restarts));
  const Var shorter_trial = s * shrink;
  const Var trial = choose(searches, shorter_trial, direction * length);
  const Var accepted_loss = choose(accepts, loss, loss_);

  const Var improves = make::op("logical_or", {starts, is_below(accepted_loss, loss_)});
  const Var idle = choose(improves, zero, idle_ + 1.0);

  const auto assign = [&](Var state, Var next) { make::op("assign", {state, choose(runs_, next, state)}); };
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    assign(parameters_[i], choose(accepts, trials_[i], parameters_[i]));
  assign(trial_, trial);
  assign(gradient_, accepted_g);
  assign(inverse_, inverse);
  assign(updated_, next_updated);
  assign(length_, length);
  assign(loss_, accepted_loss);
  assign(idle_, idle);
  return {accepted_loss, make::op("greater_equal", {idle, make::like(kMaxIdle, idle)})};
}

}  // namespace graphrun
