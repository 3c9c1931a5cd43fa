// training_phase.cpp: the training phase of a step graph: gradients, updates of the optimizers, assignments, and the
// cause for which training stops.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "graph/frontend/library/bfgs.h"
#include "graph/frontend/library/flat_vector.h"
#include "graph/frontend/library/levenberg_marquardt.h"
#include "graph/frontend/library/optimizers.h"
#include "graph/frontend/library/schedules.h"
#include "graph/frontend/step/step_builder.h"
#include "graph/gradients.h"
#include "graph/ir/needed.h"

namespace graphrun {
namespace {

using ir::kNoNode;
using ir::NodeId;

class TrainingPhase {
 public:
  TrainingPhase(StepBuilder& step, const Split& split)
      : step_(step), make_(step.make), train_(step.model.train), phase_(step.enter_split("train", split)) {}

  void build() {
    const OptimizerSpec& optimizer = step_.objectives.front().optimizer;
    const bool joint = is_joint(optimizer);
    if (joint || train_.stop_at) {
      step_.result.stop = step_.add_slot("train/stop:cause");
      runs_ = make::op("equal", {stop_cause(), make::like(0, stop_cause())});
    }
    if (joint)
      optimizer.name == "levenberg_marquardt" ? add_least_squares() : add_bfgs();
    else
      add_objectives();
    for (const auto& [parameter, node] : unmoved_) step_.copied[parameter] = node;
    step_.finish_split();
  }

 private:
  using Assigned = std::vector<std::pair<NodeId, NodeId>>;  // model parameter or state, next value

  Var stop_cause() { return step_.var(step_.result.stop); }

  // Optimizers that update one parameter at a time.
  void add_objectives() {
    Assigned assigned, updated;
    add_assignments(false, assigned);
    Var total;
    std::vector<Var> all_gradients;
    std::vector<NodeId> losses;
    for (const ObjectiveSpec& objective : step_.objectives) {
      if (!updated.empty()) take_turn(objective.name, updated);
      const NodeId loss = step_.copy(objective.minimize.id);
      losses.push_back(loss);
      total = losses.size() == 1 ? step_.var(loss) : total + step_.var(loss);
      const std::vector<Var> parameters = parameters_of(objective), gradient = add_gradients(loss, parameters);
      all_gradients.insert(all_gradients.end(), gradient.begin(), gradient.end());
      if (losses.size() == step_.objectives.size()) {
        step_.add_record(phase_, "loss", total.id);
        for (std::size_t i = 0; losses.size() > 1 && i < losses.size(); ++i)
          step_.add_record(phase_, step_.objectives[i].name, losses[i]);
      }
      const std::vector<Var> next = update(objective, parameters, gradient);
      for (std::size_t i = 0; i < next.size(); ++i) updated.emplace_back(objective.parameters[i].id, next[i].id);
    }
    if (std::ranges::any_of(step_.source.assignments, &GraphBuilder::Impl::Assignment::after))
      take_turn("after", updated);
    add_assignments(true, assigned);
    for (const auto& [state, value] : assigned)
      make_.add("assign",
                {state, runs_.make == nullptr ? value : choose(runs_, step_.var(value), step_.var(state)).id});
    if (runs_.make != nullptr) add_stop(total, {}, all_gradients);
  }

  // The loss and its gradient are those of the trial point.
  void add_bfgs() {
    phase_.needs_one_batch =
        "the optimizer bfgs compares losses of the same rows, so a batch must hold the whole split";
    const ObjectiveSpec& objective = step_.objectives.front();
    const std::vector<Var> parameters = parameters_of(objective);
    Bfgs bfgs(make_, parameters, runs_);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      unmoved_.emplace_back(objective.parameters[i].id, parameters[i].id);
      step_.copied[objective.parameters[i].id] = bfgs.trials()[i].id;
    }
    const NodeId loss = step_.copy(objective.minimize.id);
    const std::vector<Var> gradient = add_gradients(loss, bfgs.trials(), parameters);
    const Bfgs::Result step = bfgs.step(make::cast(step_.var(loss), DType::f32), gradient);
    step_.add_record(phase_, "loss", step.loss.id);
    add_stop(step.loss, step.stalls, gradient);
  }

  // Training with levenberg_marquardt: the forward pass runs twice on the same rows, the second time at the trial
  // point.
  void add_least_squares() {
    const ObjectiveSpec& objective = step_.objectives.front();
    const OptimizerDef& optimizer = row_named("optimizer", optimizers(), objective.optimizer.name);
    const ir::Attrs attrs = attributes_of(objective.optimizer, optimizer);
    const std::vector<Var> parameters = parameters_of(objective);
    std::vector<bool> decays;
    for (const Value parameter : objective.parameters) decays.push_back(decays_of(parameter));
    LevenbergMarquardt optimizes(make_, parameters, decays, attrs, runs_);
    const Var loss = step_.copy_var(objective.minimize.id);
    const std::vector<Var> trials = optimizes.trials(loss), gradient = optimizes.gradients();
    Assigned moved;
    for (std::size_t i = 0; i < trials.size(); ++i) {
      name_gradient(parameters[i].id, gradient[i].id);
      moved.emplace_back(objective.parameters[i].id, trials[i].id);
    }
    step_.result.equations = optimizes.equations();
    take_turn("trial", moved);
    const Var stalls = optimizes.step(loss, step_.copy_var(objective.minimize.id));
    step_.add_record(phase_, "loss", loss.id);
    add_stop(loss, stalls, gradient);
    for (const auto& [name, state] : optimizes.numbers()) step_.result.optimizer.emplace_back(name, state.id);
  }

  // Updates and records the cause for which training stops. `stalls`: bool scalar, or null.
  void add_stop(Var loss, Var stalls, const std::vector<Var>& gradient) {
    const auto cause = [&](StopCause one) { return make::like(static_cast<double>(one), stop_cause()); };
    Var next = cause(StopCause::none);
    if (stalls.make != nullptr) next = choose(stalls, cause(StopCause::no_descent), next);
    if (train_.stop_at && train_.stop_at->gradient > 0 && !gradient.empty()) {
      Var largest;
      for (const Var one : gradient) {
        const Var size = make::op("max", {make::op("abs", {one})});
        largest = largest.make == nullptr ? size : make::op("maximum", {largest, size});
      }
      const Var flat = make::op("less_equal", {largest, make::like(train_.stop_at->gradient, largest)});
      next = choose(flat, cause(StopCause::gradient), next);
    }
    if (train_.stop_at) {
      const Var reached = make::op("less_equal", {loss, make::like(train_.stop_at->loss, loss)});
      next = choose(reached, cause(StopCause::loss), next);
    }
    next = choose(runs_, next, stop_cause());
    phase_.stop_ring = step_.add_ring(phase_, "stop", next.id);
    make_.add("assign", {step_.result.stop, next.id});
  }

  void add_assignments(bool after, Assigned& to) {
    for (const auto& assignment : step_.source.assignments) {
      if (assignment.after != after) continue;
      const NodeId value = step_.copy(assignment.value);
      to.emplace_back(step_.copy(assignment.state), value);
    }
  }

  // Makes later nodes use the updated values of the `updated` parameters and recompute their dependents. Gradients do
  // not flow back through an update.
  void take_turn(std::string_view name, Assigned& updated) {
    step_.turn = fmt::format(":{}", name);
    std::vector<NodeId> changed;
    for (const auto& [parameter, next] : updated) {
      changed.push_back(parameter);
      unmoved_.emplace_back(parameter, step_.copied[parameter]);
    }
    const std::vector<bool> depends = ir::depending_on(step_.specialized(), changed);
    for (NodeId id = 0; id < depends.size(); ++id) {
      if (depends[id]) step_.copied[id] = kNoNode;
    }
    for (const auto& [parameter, next] : updated)
      step_.copied[parameter] = make::op("stop_gradient", {step_.var(next)}).id;
    updated.clear();
  }

  std::vector<Var> parameters_of(const ObjectiveSpec& objective) {
    std::vector<Var> parameters;
    for (const Value parameter : objective.parameters) parameters.push_back(step_.copy_var(parameter.id));
    return parameters;
  }

  bool decays_of(Value parameter) const { return step_.source.parameters.at(parameter.id).decay; }

  static ir::Attrs attributes_of(const OptimizerSpec& spec, const OptimizerDef& optimizer) {
    return {optimizer.attributes, {spec.attributes.begin(), spec.attributes.end()}};
  }

  // Gradients at `points`, which get the names of `parameters`.
  std::vector<Var> add_gradients(NodeId loss, const std::vector<Var>& points, const std::vector<Var>& parameters) {
    std::vector<NodeId> wanted;
    for (const Var point : points) wanted.push_back(point.id);
    std::vector<Var> gradient;
    for (const NodeId id : gradients(make_, loss, wanted)) gradient.push_back(step_.var(id));
    for (std::size_t i = 0; i < points.size(); ++i) name_gradient(parameters[i].id, gradient[i].id);
    return gradient;
  }
  std::vector<Var> add_gradients(NodeId loss, const std::vector<Var>& parameters) {
    return add_gradients(loss, parameters, parameters);
  }

  void name_gradient(NodeId parameter, NodeId gradient) {
    const std::string name = fmt::format("train/{}:gradient", step_.graph()[parameter].name);
    const bool named = step_.graph()[gradient].name.find('/') != std::string::npos;
    if (step_.graph()[gradient].phase != ir::kShared && !named) make_.rename(gradient, name);
  }

  // Adds the updates and returns the parameters' next values.
  std::vector<Var> update(const ObjectiveSpec& objective, const std::vector<Var>& parameters,
                          std::vector<Var> gradient) {
    const OptimizerSpec& spec = objective.optimizer;
    const OptimizerDef& optimizer = row_named("optimizer", optimizers(), spec.name);
    const ir::Attrs attrs = attributes_of(spec, optimizer);
    const std::map<std::string, Var, std::less<>> runtime = runtime_attributes(spec, optimizer, attrs, objective.name);
    Var rate =
        runtime.contains("lr")
            ? runtime.at("lr")
            : step_.var(spec.lr ? schedule_value(make_, *spec.lr, step_.counter, [this] { return epoch_steps(); })
                                : make_.scalar(attrs.real("lr"), DType::f32));
    if (train_.lr_plateau) {
      if (step_.result.lr_factor == kNoNode) step_.result.lr_factor = step_.add_slot("train/lr:factor");
      rate = rate * step_.var(step_.result.lr_factor);
    }
    const Var one = step_.var(make_.scalar(1, DType::f32));
    const Var steps = make::cast(step_.var(step_.counter), DType::f32);
    const Var updates =
        objective.every == 1 ? steps : make::op("floor", {steps / static_cast<double>(objective.every)});
    const Var time = updates + one, due = when_running(objective.every == 1 ? Var{} : is_due(objective));
    if (train_.clip_value > 0) clip_value(gradient, train_.clip_value);
    if (const Factor norm = max_norm(); !norm.is_zero()) clip_norm(gradient, norm);
    std::vector<Var> updated;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      UpdateContext context{make_, attrs, parameters[i], gradient[i], rate, time, runtime, due};
      const bool decays = decays_of(objective.parameters[i]);
      updated.push_back(context.if_due(update_parameter(optimizer, context, decays), context.parameter));
      make_.add("assign", {parameters[i].id, updated.back().id});
    }
    return updated;
  }

  Var when_running(Var due) {
    if (runs_.make == nullptr || due.make == nullptr) return runs_.make == nullptr ? due : runs_;
    return both(due, runs_);
  }

  // TrainSpec::clip_norm; all objectives share one state.
  Factor max_norm() {
    if (!train_.clip_norm_at_run_time) return {train_.clip_norm};
    if (clip_norm_ == kNoNode) clip_norm_ = add_runtime("clip_norm", train_.clip_norm);
    return {train_.clip_norm, step_.var(clip_norm_)};
  }

  NodeId add_runtime(std::string_view name, double value) {
    const NodeId state = step_.add_slot(fmt::format("train:{}", name));
    step_.result.runtime.emplace_back(state, value);
    return state;
  }

  // Whether this step, the last of each `every` steps, updates the objective's parameters. A state counts the steps
  // since the last update, because f32 cannot represent all step numbers.
  Var is_due(const ObjectiveSpec& objective) {
    const Var waited = step_.var(step_.add_slot(fmt::format("train/{}:waited", objective.name)));
    const Var due = make::op("equal", {waited, make::like(static_cast<double>(objective.every - 1), waited)});
    const Var zero = make::like(0, waited), more = waited + 1.0;
    const Var next = choose(due, zero, more);
    make_.add("assign", {waited.id, next.id});
    return due;
  }

  // States for runtime hyperparameters of the optimizer: "train:lr", or "train:NAME.lr" for one of several objectives.
  std::map<std::string, Var, std::less<>> runtime_attributes(const OptimizerSpec& spec, const OptimizerDef& optimizer,
                                                             const ir::Attrs& attrs, const std::string& objective) {
    std::map<std::string, Var, std::less<>> states;
    for (const std::string& name : spec.runtime) {
      if (!ir::find_attr(optimizer.attributes, name)) throw unknown("attribute", name, names_of(optimizer.attributes));
      if (name == "lr" && spec.lr)
        throw Error(ErrorKind::input, "runtime.lr", "lr has a schedule: it is not set at run time, too");
      if (states.contains(name)) continue;
      const std::string full = objective.empty() ? name : fmt::format("{}.{}", objective, name);
      states.emplace(name, step_.var(add_runtime(full, attrs.real(name))));
    }
    return states;
  }

  NodeId epoch_steps() {
    NodeId& steps = step_.graph().phases.back().epoch_steps;
    if (steps != kNoNode) return steps;
    if (phase_.rows_vary) {
      throw Error(ErrorKind::input, "schedule.rows",
                  "a schedule in epochs needs a training split whose number of rows does not vary",
                  "give its length in steps");
    }
    return steps = step_.add_named("train/epoch:steps",
                                   make::source(make_, "constant", {}, {{"values", std::vector<double>{1}}}));
  }

  StepBuilder& step_;
  ir::Builder& make_;
  const TrainSpec& train_;
  StepPhase& phase_;
  Assigned unmoved_;            // updated parameters, with their original nodes
  Var runs_ = {};               // bool scalar: training has not stopped; null if it never stops early
  NodeId clip_norm_ = kNoNode;  // state of a runtime clip_norm
};

}  // namespace

void add_training(StepBuilder& step, const Split& split) {
  TrainingPhase(step, split).build();
}

}  // namespace graphrun
