#include "graph/frontend/library/levenberg_marquardt.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/frontend/library/flat_vector.h"
#include "graph/gradients.h"
#include "graph/ir/needed.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/scalar_op.h"

namespace graphrun {
namespace {

constexpr double kMaxGrowth = 1e6;          // factor of the damping after many rejected steps
constexpr double kMaxRejected = 100;        // steps in a row that end training
constexpr std::int64_t kMaxResiduals = 16;  // per row and square: each needs a reverse sweep

bool is_square(const ir::Node& node) {
  return node.op == scalar_op::square || (node.op == scalar_op::mul && node.inputs[0] == node.inputs[1]);
}

// Squares that the loss adds, with factors that do not depend on the parameters.
std::vector<ir::NodeId> squares_of(const ir::Graph& graph, ir::NodeId loss, std::span<const ir::NodeId> parameters) {
  const std::vector<bool> depends = ir::depending_on(graph, parameters);
  std::vector<ir::NodeId> squares;
  const auto ends = [&](ir::NodeId id) { return !depends[id] || is_square(graph[id]); };
  const std::vector<ir::NodeId> needed = ir::needed_nodes(graph, loss, ends);
  for (auto id = needed.rbegin(); id != needed.rend(); ++id) {  // an error names the op next to the loss
    const ir::Node& node = graph[*id];
    if (!depends[*id]) continue;
    const auto fail = [&](const std::string& what) {
      throw Error(ErrorKind::input, "optimizer.least_squares",
                  fmt::format("the optimizer levenberg_marquardt needs a sum of squares as the loss: {}", what),
                  "mse(y_hat, y), or sums and means of square(...), each with a factor that is not trained");
    };
    if (is_square(node)) {
      const TensorType& type = node.type;
      if (type.rows != 1)
        fail(fmt::format("'{}' is not a square for each row; the optimizer has an attribute l2", node.name));
      if (type.shape.with_batch(1).elements() > kMaxResiduals)
        fail(fmt::format("'{}' has {} residuals a row, at most {} are supported", node.name,
                         type.shape.with_batch(1).elements(), kMaxResiduals));
      squares.push_back(*id);
      continue;
    }
    const auto trained = std::ranges::count_if(node.inputs, [&](ir::NodeId input) { return depends[input]; });
    const bool scales = node.op == scalar_op::mul || (node.op == scalar_op::div && !depends[node.inputs.back()]);
    if (node.op != scalar_op::add && node.op != Op::sum && node.op != Op::reshape && !(scales && trained == 1))
      fail(fmt::format("'{}' ({}) depends on the parameters", node.name, node.def->name()));
  }
  return squares;
}

// Cotangent that selects residual k of each row.
Var selects(Var residual, std::int64_t k) {
  const TensorType type = residual.type();
  const std::int64_t width = type.shape.with_batch(1).elements();
  if (width == 1) return make::broadcast_to(make::like(1, residual), type);
  Shape shape = type.shape;
  shape[0] = 1;
  std::vector<double> values(static_cast<std::size_t>(width));
  values[static_cast<std::size_t>(k)] = 1;
  return make::broadcast_to(
      make::source(*residual.make, "constant", {type.dtype, shape, 0}, {{"values", std::move(values)}}), type);
}

// Column k of a value with one row per sample.
Var column(Var value, std::int64_t k) {
  const Shape& shape = value.type().shape;
  const std::int64_t width = shape.with_batch(1).elements();
  const Var rows = make::reshape(value, Shape{shape[0], width});
  return width == 1 ? rows : make::op("slice", {rows}, {{"axis", std::int64_t{1}}, {"start", k}, {"stop", k + 1}});
}

Var over_rows(Var a, Var b) {
  return make::op("matmul", {a, b}, {{"transpose_a", true}});
}

}  // namespace

LevenbergMarquardt::LevenbergMarquardt(ir::Builder& make, std::vector<Var> parameters, const std::vector<bool>& decays,
                                       const ir::Attrs& attrs, Var runs)
    : make_(make), parameters_(std::move(parameters)), attrs_(attrs), runs_(runs) {
  joint_size("levenberg_marquardt", parameters_);
  const auto slot = [&](std::string_view name) {
    return joint_slot(make, name, {parameters_.front().type().dtype, {}, 0});
  };
  damping_ = slot("damping");
  growth_ = slot("damping_growth");
  idle_ = slot("idle");
  numbers_ = {{"accepted", slot("accepted")}, {"damping", damping_}, {"gradient_norm", slot("gradient_norm")}};
  at_ = flat(parameters_);
  if (attrs.real("l2") == 0) return;
  std::vector<Var> factors;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    factors.push_back(
        make::broadcast_to(make::like(decays[i] ? attrs.real("l2") / 2 : 0, parameters_[i]), parameters_[i].type()));
  decay_ = flat(factors);
}

Var LevenbergMarquardt::penalty(Var vector) const {
  return dot(decay_, make::square(vector));
}

std::vector<Var> LevenbergMarquardt::trials(Var loss) {
  std::vector<ir::NodeId> parameters;
  for (const Var parameter : parameters_) parameters.push_back(parameter.id);
  const std::vector<ir::NodeId> squares = squares_of(make_.graph(), loss.id, parameters);
  const std::vector<ir::NodeId> weights = graphrun::gradients(make_, loss.id, squares);
  Var A, g;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    const Var residual{&make_, make_.graph()[squares[i]].inputs[0]}, weight{&make_, weights[i]};
    for (std::int64_t k = 0; k < residual.type().shape.with_batch(1).elements(); ++k) {
      const Var J{&make_, gradients_by_row(make_, residual.id, selects(residual, k).id, parameters)};
      const Var weighted = J * column(weight, k);
      const Var square = over_rows(weighted, J);
      const Var product = over_rows(weighted, column(residual, k));
      A = A.make == nullptr ? square : A + square;
      g = g.make == nullptr ? product : g + product;
    }
  }
  g = make::reshape(g, at_.type().shape);
  if (decay_.make != nullptr) {
    A = A + make::cast(identity_like(at_), A.type().dtype) * decay_;
    g = g + decay_ * at_;
  }
  equations_ = {A.id, g.id, {}};
  for (std::size_t i = 0; i < squares.size(); ++i) equations_.residuals.emplace_back(squares[i], weights[i]);
  gradient_ = g * 2.0;
  const Var starts = make::op("equal", {damping_, make::like(0, damping_)});
  current_damping_ = choose(starts, factor("damping"), damping_);
  // The largest element of a matrix without negative eigenvalues is on its diagonal.
  shift_ = current_damping_ * make::op("max", {A});
  step_ = make::op("solve_spd", {A, g, shift_});
  std::vector<Var> trials;
  each_part(step_, parameters_, [&](Var parameter, Var part) { trials.push_back(parameter - part); });
  return trials;
}

std::vector<Var> LevenbergMarquardt::gradients() const {
  std::vector<Var> parts;
  each_part(gradient_, parameters_, [&](Var, Var part) { parts.push_back(part); });
  return parts;
}

Var LevenbergMarquardt::step(Var loss, Var loss_at_trial) {
  const Var one = make::like(1, loss), zero = make::like(0, loss);
  const Var next = at_ - step_;
  if (decay_.make != nullptr) {
    const Var before = penalty(at_), after = penalty(next);
    loss = loss + before;
    loss_at_trial = loss_at_trial + after;
  }
  // Decrease of the linearized loss: d (g + shift d), where 2 g is the gradient.
  const Var predicted = dot(step_, gradient_ * 0.5 + step_ * shift_);
  const Var accepts = is_below(loss_at_trial, loss);
  const Var gain = (loss - loss_at_trial) / predicted;
  const Var error = gain * 2.0 - 1.0;
  const Var by_gain = one - error * error * error;
  const Var shrink = make::op("maximum", {make::like(1.0 / 3, loss), by_gain});
  const Var growth = make::op("maximum", {growth_, make::like(2, growth_)});
  const Var damped = current_damping_ * choose(accepts, shrink, growth);
  const Var limited =
      make::op("minimum", {make::op("maximum", {damped, factor("min_damping")}), factor("max_damping")});
  const Var grown = make::op("minimum", {growth * 2.0, make::like(kMaxGrowth, growth)});
  const Var idle = choose(accepts, zero, idle_ + 1.0);
  const auto assign = [&](Var state, Var value) { make::op("assign", {state, choose(runs_, value, state)}); };
  each_part(next, parameters_, [&](Var parameter, Var part) { assign(parameter, choose(accepts, part, parameter)); });
  assign(damping_, limited);
  assign(growth_, choose(accepts, make::like(2, growth), grown));
  assign(idle_, idle);
  assign(numbers_[0].state, numbers_[0].state + choose(accepts, one, zero));
  assign(numbers_[2].state, make::op("sqrt", {dot(gradient_, gradient_)}));
  return make::op("greater_equal", {idle, make::like(kMaxRejected, idle)});
}

}  // namespace graphrun
