#include "graph/frontend/library/optimizers.h"

#include <fmt/format.h>

#include <cmath>

#include "graph/ops/make.h"

namespace graphrun {
namespace {

Var descend(const UpdateContext& c, Var direction) {
  return c.parameter - direction * c.lr;
}
Var root(Var x) {
  return make::op("sqrt", {x});
}
// The slot's next value, a weighted mean: weight `stays` for the old one, the rest for the new one.
Var average(const UpdateContext& c, Var slot, const Factor& stays, Var fresh) {
  const Var added = stays.rest().of(fresh);
  return c.assign(slot, stays.of(slot) + added);
}

Var velocity(UpdateContext& c) {
  const Var old = c.slot("velocity");
  return c.assign(old, c.factor("momentum").of(old) + c.gradient);
}
Var nesterov(UpdateContext& c) {
  const Var v = velocity(c);
  return descend(c, c.gradient + c.factor("momentum").of(v));
}

Var rmsprop(UpdateContext& c) {
  const Var old = c.slot("square_average");
  const Var s = average(c, old, c.factor("alpha"), make::square(c.gradient));
  return descend(c, c.gradient / c.factor("eps").plus(root(s)));
}

Var adagrad(UpdateContext& c) {
  const Var old = c.slot("square_sum");
  const Var total = c.assign(old, old + make::square(c.gradient));
  return descend(c, c.gradient / c.factor("eps").plus(root(total)));
}

// 1 - beta^t: bias correction of an average of t values that starts at zero. As -expm1(t log beta): the difference of
// two floats near one would lose half of its digits.
Var correction(const UpdateContext& c, const Factor& beta) {
  if (beta.is_zero()) return make::like(1, c.time);
  const Var exponent = beta.is_state() ? c.time * make::op("log", {beta.state}) : c.time * std::log(beta.number);
  return -make::op("expm1", {exponent});
}

Var adam(UpdateContext& c) {
  const Factor beta1 = c.factor("beta1");
  const Factor beta2 = c.factor("beta2");
  const Var correction1 = correction(c, beta1);  // scalars first, so that the steps on tensors stay adjacent
  const Var correction2 = correction(c, beta2);
  const Var old_m = c.slot("m");
  const Var old_v = c.slot("v");
  const Var m = average(c, old_m, beta1, c.gradient);
  const Var v = average(c, old_v, beta2, make::square(c.gradient));
  const Var m_hat = m / correction1;
  const Var v_hat = v / correction2;
  return descend(c, m_hat / c.factor("eps").plus(root(v_hat)));
}

// A step grows while its gradient keeps the sign, and shrinks after a change of sign, for which the element rests.
// Selects by factors of 0 and 1, so that an element region computes everything in one pass.
Var rprop(UpdateContext& c) {
  const auto scalar = [&](std::string_view name) { return c.factor(name).of(make::like(1, c.lr)); };
  const auto positive = [&](Var x) { return make::op("maximum", {x, make::like(0, x)}); };
  const Var before = c.slot("previous"), old = c.slot("step_size");
  const Var size = old + c.lr * positive(2 - c.time);  // lr at the first step
  const Var agreement = make::op("sign", {c.gradient * before});
  const Var keeps = positive(agreement), turns = positive(0 - agreement);
  const Var next =
      keeps * c.factor("eta_plus").of(size) + turns * c.factor("eta_minus").of(size) + (1 - keeps - turns) * size;
  const Var step =
      c.assign(old, make::op("minimum", {make::op("maximum", {next, scalar("step_min")}), scalar("step_max")}));
  const Var g = c.assign(before, (1 - turns) * c.gradient);
  return c.parameter - make::op("sign", {g}) * step;
}

ir::AttrDef number(std::string_view name, double fallback, std::string_view doc, bool required = false) {
  return {name, fallback, doc, required, 0.0};
}

ir::AttrSchema schema(std::vector<ir::AttrDef> own, double weight_decay = 0,
                      std::string_view lr = "learning rate, which scales each update; or a schedule") {
  ir::AttrSchema attrs = {number("lr", 0.01, lr, true)};
  attrs.insert(attrs.end(), own.begin(), own.end());
  attrs.push_back(number("weight_decay", weight_decay,
                         "decoupled weight decay: shrinks each parameter by lr * weight_decay of its value"));
  attrs.push_back(number("l2", 0, "L2 penalty: adds l2 times each parameter to its gradient"));
  return attrs;
}

}  // namespace

Var Factor::of(Var x) const {
  return is_state() ? x * state : x * number;
}
Var Factor::plus(Var x) const {
  return is_state() ? x + state : x + number;
}
Var Factor::over(Var x) const {
  return is_state() ? state / x : number / x;
}
Factor Factor::rest() const {
  return is_state() ? Factor{1 - number, 1 - state} : Factor{1 - number};
}

Factor UpdateContext::factor(std::string_view name) const {
  const auto state = runtime.find(name);
  return {attrs.real(name), state == runtime.end() ? Var{} : state->second};
}

Var UpdateContext::slot(std::string_view name) {
  const Var slot = make::source(make, "state", parameter.type(), {{"kind", std::string("slot")}});
  make.rename(slot.id, fmt::format("{}:{}", make.graph()[parameter.id].name, name));
  return slot;
}

Var UpdateContext::assign(Var slot, Var value) const {
  make::op("assign", {slot, if_due(value, slot)});
  return value;
}

Var UpdateContext::if_due(Var next, Var otherwise) const {
  return due.make == nullptr ? next : make::op("where", {due, next, otherwise});
}

const std::vector<OptimizerDef>& optimizers() {
  static const std::vector<ir::AttrDef> mu = {
      number("momentum", 0.9, "share of the velocity, a running sum of gradients, that each step keeps")};
  static const std::vector<ir::AttrDef> betas = {
      number("beta1", 0.9, "decay rate of the first moment, the running mean of the gradient"),
      number("beta2", 0.999, "decay rate of the second moment, the running mean of the squared gradient"),
      number("eps", 1e-8, "keeps the divisor above 0")};
  static const std::vector<OptimizerDef> table = {
      {{"sgd", "p - lr * g", schema({})}, [](UpdateContext& c) { return descend(c, c.gradient); }},
      {{"momentum", "v = momentum * v + g; p - lr * v", schema(mu)},
       [](UpdateContext& c) { return descend(c, velocity(c)); }},
      {{"nesterov", "v = momentum * v + g; p - lr * (g + momentum * v)", schema(mu)}, nesterov},
      {{"rmsprop", "s = alpha * s + (1 - alpha) * g^2; p - lr * g / (sqrt(s) + eps)",
        schema({number("alpha", 0.99, "decay rate of s, the running mean of the squared gradient"),
                number("eps", 1e-8, "keeps the divisor above 0")})},
       rmsprop},
      {{"adagrad", "s = s + g^2; p - lr * g / (sqrt(s) + eps)",
        schema({number("eps", 1e-10, "keeps the divisor above 0")})},
       adagrad},
      {{"adam", "m, v = bias-corrected moments of g; p - lr * m / (sqrt(v) + eps)", schema(betas)}, adam},
      {{"adamw", "adam, except that weight_decay is 0.01 by default", schema(betas, 0.01)}, adam},
      {{"rprop",
        "s = s * eta_plus or eta_minus where g keeps or changes its sign; p - s * sign(g); suits \"batch\": \"all\"",
        schema({{"eta_minus", 0.5, "factor of a step size after a change of sign", false, 0.0, 1.0},
                {"eta_plus", 1.2, "factor of a step size while the sign stays", false, 1.0},
                number("step_min", 1e-6, "smallest step size"),
                number("step_max", 50, "largest step size")},
               0, "initial step size of each element")},
       rprop},
      {{"bfgs", "self-scaled BFGS with a line search, one evaluation per step; needs \"batch\": \"all\"", {}}, nullptr},
      {{"levenberg_marquardt",
        "damped least squares, one attempt per step; for losses that are sums of squares",
        {number("damping", 1e-3, "initial damping, relative to the largest diagonal element of the normal equations"),
         number("min_damping", 1e-12, "lowest damping"), number("max_damping", 1e10, "highest damping"),
         number("l2", 0, "L2 penalty: adds l2 times each parameter to its gradient")}},
       nullptr},
  };
  return table;
}

bool is_joint(const OptimizerSpec& optimizer) {
  return row_named("optimizer", optimizers(), optimizer.name).update == nullptr;
}

Var update_parameter(const OptimizerDef& optimizer, UpdateContext& c, bool decays) {
  const Factor l2 = c.factor("l2");
  const Factor decay = c.factor("weight_decay");
  if (decays && !l2.is_zero()) c.gradient = c.gradient + l2.of(c.parameter);
  if (!decays || decay.is_zero()) return optimizer.update(c);
  const Var rate = decay.of(c.lr);
  const Var next = optimizer.update(c);
  // PyTorch shrinks p first and then descends from there: the step does not see the shrunken p, so the order is the
  // same.
  return next - c.parameter * rate;
}

void clip_value(std::vector<Var>& gradients, double max_value) {
  for (Var& gradient : gradients) gradient = make::op("clip", {gradient}, {{"low", -max_value}, {"high", max_value}});
}

void clip_norm(std::vector<Var>& gradients, const Factor& max_norm) {
  Var total;
  for (const Var gradient : gradients) {
    const Var part = make::sum(make::square(gradient), {}, false);
    total = total.id == ir::kNoNode ? part : total + part;
  }
  if (gradients.empty()) return;
  const Var norm = root(total);
  const Var room = max_norm.over(norm + 1e-6);
  const Var one = make::like(1, norm);
  Var factor = make::op("minimum", {room, one});
  if (max_norm.is_state()) {
    const Var clips = make::op("greater", {max_norm.state, make::like(0, norm)});
    factor = make::op("where", {clips, factor, one});
  }
  for (Var& gradient : gradients) gradient = gradient * factor;
}

}  // namespace graphrun
