#include "graph/frontend/library/optimizers.h"

#include <fmt/format.h>

#include <cmath>

#include "graph/ops/make.h"

namespace graphrun {
namespace {

using ir::NodeId;

NodeId descend(UpdateContext& c, NodeId direction) {
  return make::sub(c.make, c.parameter, make::mul(c.make, direction, c.lr));
}
// a old + b new
NodeId blend(UpdateContext& c, NodeId old, double a, NodeId fresh, double b) {
  return make::add(c.make, make::scale(c.make, old, a), make::scale(c.make, fresh, b));
}
NodeId sqrt(UpdateContext& c, NodeId x) {
  return c.make.add("sqrt", {x});
}
NodeId plus(UpdateContext& c, NodeId x, double number) {
  return make::add(c.make, x, make::like(c.make, number, x));
}

NodeId sgd(UpdateContext& c) {
  return descend(c, c.gradient);
}

NodeId velocity(UpdateContext& c) {
  const NodeId old = c.slot("velocity");
  return c.assign(old, make::add(c.make, make::scale(c.make, old, c.attrs.real("momentum")), c.gradient));
}
NodeId momentum(UpdateContext& c) {
  return descend(c, velocity(c));
}
NodeId nesterov(UpdateContext& c) {
  const NodeId v = velocity(c);
  return descend(c, make::add(c.make, c.gradient, make::scale(c.make, v, c.attrs.real("momentum"))));
}

NodeId rmsprop(UpdateContext& c) {
  const double alpha = c.attrs.real("alpha");
  const NodeId old = c.slot("square_average");
  const NodeId average = c.assign(old, blend(c, old, alpha, make::square(c.make, c.gradient), 1 - alpha));
  return descend(c, make::div(c.make, c.gradient, plus(c, sqrt(c, average), c.attrs.real("eps"))));
}

NodeId adagrad(UpdateContext& c) {
  const NodeId old = c.slot("square_sum");
  const NodeId total = c.assign(old, make::add(c.make, old, make::square(c.make, c.gradient)));
  return descend(c, make::div(c.make, c.gradient, plus(c, sqrt(c, total), c.attrs.real("eps"))));
}

// 1 - beta^t: what the average of t values, started at zero, lacks. As -expm1(t log beta): the difference of two floats
// near one would lose half of its digits.
NodeId correction(UpdateContext& c, double beta) {
  if (beta == 0) return c.make.scalar(1, DType::f32);
  return make::neg(c.make, c.make.add("expm1", {make::scale(c.make, c.time, std::log(beta))}));
}

NodeId adam(UpdateContext& c) {
  const double beta1 = c.attrs.real("beta1");
  const double beta2 = c.attrs.real("beta2");
  const NodeId correction1 = correction(c, beta1);  // numbers first: then nothing stands between the steps on tensors
  const NodeId correction2 = correction(c, beta2);
  const NodeId old_m = c.slot("m");
  const NodeId old_v = c.slot("v");
  const NodeId m = c.assign(old_m, blend(c, old_m, beta1, c.gradient, 1 - beta1));
  const NodeId v = c.assign(old_v, blend(c, old_v, beta2, make::square(c.make, c.gradient), 1 - beta2));
  const NodeId m_hat = make::div(c.make, m, correction1);
  const NodeId v_hat = make::div(c.make, v, correction2);
  return descend(c, make::div(c.make, m_hat, plus(c, sqrt(c, v_hat), c.attrs.real("eps"))));
}

ir::AttrDef number(std::string_view name, double fallback, std::string_view doc, bool required = false) {
  return {name, fallback, doc, required, 0.0};
}

ir::AttrSchema schema(std::vector<ir::AttrDef> own, double weight_decay = 0) {
  ir::AttrSchema attrs = {number("lr", 0.01, "learning rate, or a schedule", true)};
  attrs.insert(attrs.end(), own.begin(), own.end());
  attrs.push_back(number("weight_decay", weight_decay, "decoupled: p - lr * weight_decay * p"));
  attrs.push_back(number("l2", 0, "g + l2 * p"));
  return attrs;
}

}  // namespace

NodeId UpdateContext::slot(std::string_view name) {
  const TensorType type = make.type(parameter);
  const NodeId id = make.add(
      "state", {},
      {{"dtype", std::string(name_of(type.dtype))}, {"shape", make::dims(type.shape)}, {"kind", std::string("slot")}});
  make.rename(id, fmt::format("{}:{}", make.graph()[parameter].name, name));
  return id;
}

const std::vector<OptimizerDef>& optimizers() {
  static const std::vector<ir::AttrDef> mu = {number("momentum", 0.9, "how much of the velocity stays")};
  static const std::vector<ir::AttrDef> betas = {number("beta1", 0.9, "how much of the mean of g stays"),
                                                 number("beta2", 0.999, "how much of the mean of g^2 stays"),
                                                 number("eps", 1e-8, "added to the root")};
  static const std::vector<OptimizerDef> table = {
      {{"sgd", "p - lr g", schema({})}, sgd},
      {{"momentum", "v = momentum v + g; p - lr v", schema(mu)}, momentum},
      {{"nesterov", "v = momentum v + g; p - lr (g + momentum v)", schema(mu)}, nesterov},
      {{"rmsprop", "s = alpha s + (1 - alpha) g^2; p - lr g / (sqrt(s) + eps)",
        schema({number("alpha", 0.99, "how much of the mean of g^2 stays"), number("eps", 1e-8, "added to the root")})},
       rmsprop},
      {{"adagrad", "s = s + g^2; p - lr g / (sqrt(s) + eps)", schema({number("eps", 1e-10, "added to the root")})},
       adagrad},
      {{"adam", "m, v = means of g, g^2 without their bias; p - lr m / (sqrt(v) + eps)", schema(betas)}, adam},
      {{"adamw", "adam with weight decay", schema(betas, 0.01)}, adam},
  };
  return table;
}

NodeId update_parameter(const OptimizerDef& optimizer, UpdateContext& c, bool decays) {
  const double l2 = c.attrs.real("l2");
  const double decay = c.attrs.real("weight_decay");
  const NodeId parameter = c.parameter;
  if (decays && l2 != 0) c.gradient = make::add(c.make, c.gradient, make::scale(c.make, parameter, l2));
  if (!decays || decay == 0) return optimizer.update(c);
  const NodeId rate = make::scale(c.make, c.lr, decay);
  const NodeId next = optimizer.update(c);
  // PyTorch shrinks p first and then descends from there: the step does not see the shrunken p, so the order is the
  // same.
  return make::sub(c.make, next, make::mul(c.make, parameter, rate));
}

std::vector<NodeId> clip_norm(NodeFactory& make, const std::vector<NodeId>& gradients, double max_norm) {
  NodeId total = ir::kNoNode;
  for (const NodeId gradient : gradients) {
    const NodeId part = make::sum(make, make::square(make, gradient), {}, false);
    total = total == ir::kNoNode ? part : make::add(make, total, part);
  }
  std::vector<NodeId> clipped;
  if (total == ir::kNoNode) return clipped;
  const NodeId norm = make.add("sqrt", {total});
  const NodeId room =
      make::div(make, make::like(make, max_norm, norm), make::add(make, norm, make::like(make, 1e-6, norm)));
  const NodeId factor = make.add("minimum", {room, make::like(make, 1, norm)});
  for (const NodeId gradient : gradients) clipped.push_back(make::mul(make, gradient, factor));
  return clipped;
}

}  // namespace graphrun
