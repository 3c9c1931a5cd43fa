#include "graph/frontend/step/step_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "base/philox.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/library/bfgs.h"
#include "graph/frontend/library/functions.h"
#include "graph/frontend/library/levenberg_marquardt.h"
#include "graph/frontend/library/metrics.h"
#include "graph/frontend/library/optimizers.h"
#include "graph/frontend/library/schedules.h"
#include "graph/frontend/model_check.h"
#include "graph/gradients.h"
#include "graph/ir/needed.h"
#include "graph/ops/make.h"
#include "graphrun/class_outputs.h"
#include "graphrun/elements.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

using ir::kNoNode;
using ir::NodeId;

// Names in the step graph: parameters keep their names, other model nodes are "phase/name", data is "data/split/input".
// Names of nodes that the library adds have a colon ("train/W1:gradient"). Model names have neither '/' nor ':'.
class StepGraphBuilder {
 public:
  explicit StepGraphBuilder(const Model& model)
      : model_(model),
        source_(model.graph.impl()),
        objectives_(objectives_of(model)),
        in_training_(with_phase_choices(source_.builder, true)),
        otherwise_(with_phase_choices(source_.builder, false)),
        copied_(source_.graph.size(), kNoNode) {
    for (const Standardization& fitted : model.data.standardizations) fitted_[fitted.input].push_back(&fitted);
    std::vector<NodeId> roots;
    for (const ObjectiveSpec& objective : objectives_) roots.push_back(objective.minimize.id);
    for (const OutputSpec& output : model_.outputs) roots.push_back(output.value.id);
    analysis_.emplace(otherwise_, roots);
  }

  StepGraph run() {
    if (is_wide()) make_.will_widen();
    for (const Split& split : model_.data.splits) add_data(split);
    if (!objectives_.empty() && model_.data.find("train") != nullptr) add_training();
    for (const Split& split : model_.data.splits) add_evaluation(split);
    if (!model_.outputs.empty()) add_prediction();
    if (is_wide()) ir::widen(graph());
    return std::move(result_);
  }

 private:
  ir::Graph& graph() { return result_.graph; }
  // The graph is built in f32 and widened at the end.
  bool is_wide() const { return model_.train.precision == Precision::fp64; }

  // The model's graph as specialized for the current phase.
  const ir::Graph& source() const { return result_.phases.back().name == "train" ? in_training_ : otherwise_; }

  Var var(NodeId id) { return {&make_, id}; }

  NodeId add_named(const std::string& name, Var node) {
    make_.rename(node.id, name);
    return node.id;
  }

  NodeId add_state(const std::string& name, const TensorType& type, std::string_view kind) {
    return add_named(name, make::source(make_, "state", type, {{"kind", std::string(kind)}}));
  }

  NodeId add_input(const std::string& name, const TensorType& type) {
    return add_named(name, make::source(make_, "input", type, {{"rows", type.rows}}));
  }

  static const WindowedInput* find_windows(const Split& split, const std::string& input) {
    const auto found = std::ranges::find(split.windows, input, &WindowedInput::input);
    return found == split.windows.end() ? nullptr : &*found;
  }

  void add_data(const Split& split) {
    if (split.rows_vary) {
      const std::string name = fmt::format("data/{}:rows", split.name);
      result_.rows.emplace_back(split.name, add_input(name, {DType::u64, {}, 0}));
    }
    for (const auto& [column, tensor] : split.columns) {
      const NodeId input = source_.builder.find(column);
      const bool widened = is_wide() && input != kNoNode && source_.graph[input].type.dtype == DType::f32;
      add_column(split, column, {widened ? DType::f32 : tensor.dtype(), tensor.shape(), 0});
    }
    // If only the size of the split is known, it gets a column per input.
    for (std::size_t i = 0; i < source_.inputs.size() && split.columns.empty(); ++i) {
      TensorType type = source_.graph[source_.inputs[i]].type;
      type.shape[0] = split.samples();
      add_column(split, source_.graph[source_.inputs[i]].name, {type.dtype, type.shape, 0});
    }
    if (!split.windows.empty())
      add_state_of_data(fmt::format("data/{}:windows", split.name), {DType::f32, {split.samples()}, 0});
  }

  void add_column(const Split& split, const std::string& column, TensorType type) {
    if (const WindowedInput* windows = find_windows(split, column)) {
      const std::int64_t rows = windows->rows(split.samples());
      type.shape = Shape{rows, type.shape.elements() / split.samples() / windows->length};
    }
    add_state_of_data(fmt::format("data/{}/{}", split.name, column), type);
  }

  void add_state_of_data(const std::string& name, const TensorType& type) {
    const NodeId id = add_input(name, type);
    result_.data.emplace_back(name, id);
    data_.emplace(name, id);
  }

  // Windows whose first rows are `first` (batch): row numbers, which f32 holds exactly (data/inputs.h).
  Var gather_windows(const WindowedInput& windows, Var first, NodeId data) {
    std::vector<double> offsets(static_cast<std::size_t>(windows.length));
    std::iota(offsets.begin(), offsets.end(), 0.0);
    TensorType type = first.type();
    const Var column = make::reshape(first, Shape{type.shape[0], 1});
    type.shape.push_back(windows.length);
    const Var begin = make::broadcast_to(column, type);
    const Var constant = make::source(make_, "constant", {DType::f32, {1, windows.length}, 0}, {{"values", offsets}});
    const Var rows = begin + make::broadcast_to(constant, type);
    return make::op("gather", {var(data), make::cast(rows, DType::i32)});
  }

  // Starts a phase over the rows of a split: adds counter and row count, and binds the model's inputs to minibatches.
  StepPhase& enter_split(const std::string& name, const Split& split) {
    const bool training = name == "train";
    const std::int64_t samples = split.samples();
    const bool drops = training && model_.train.drop_last;
    StepPhase& phase = start_phase({.name = name, .split = split.name, .batches = {samples, 0, drops}});
    phase.counter = counter_ = add_state(name + "/step:counter", {DType::u64, {}, 0}, "counter");
    make_.count_steps(counter_);
    copied_[source_.step] = counter_;
    phase.rows_vary = split.rows_vary;
    // If the number of rows varies, it is the last operand of these ops.
    const auto of_rows = [&](std::string op, std::vector<NodeId> operands, const AttrList& attrs) {
      for (const auto& [of, rows] : result_.rows) {
        if (of == split.name) operands.push_back(rows);
      }
      return var(make_.add(split.rows_vary ? "varying_" + op : op, std::move(operands), attrs));
    };
    graph().phases.back().row_count =
        add_named(name + "/batch:count", of_rows("row_count", {counter_}, {{"total", samples}, {"drop_last", drops}}));
    AttrList attrs = {{"drop_last", drops}};
    if (training && model_.train.shuffle) {
      attrs.emplace_back("shuffle", true);
      attrs.emplace_back("key", stream_key("data.shuffle"));  // same order for all columns
    }
    std::optional<Var> windows;  // first row of each window of the batch
    for (NodeId input : source_.inputs) {
      const std::string& column = source_.graph[input].name;
      const auto data = data_.find(fmt::format("data/{}/{}", split.name, column));
      if (data == data_.end()) continue;  // nodes that need it report it
      const WindowedInput* const windowed = find_windows(split, column);
      if (windowed != nullptr && !windows)
        windows = of_rows("minibatch", {data_.at(fmt::format("data/{}:windows", split.name)), counter_}, attrs);
      const Var rows = windowed != nullptr ? gather_windows(*windowed, *windows, data->second)
                                           : of_rows("minibatch", {data->second, counter_}, attrs);
      copied_[input] = add_named(name + "/" + column, make::reshape(rows, source_.graph[input].type.shape));
    }
    return phase;
  }

  std::int64_t stream_key(std::string_view name) const {
    return static_cast<std::int64_t>(Stream::named(model_.train.seed, name).key);
  }

  StepPhase& start_phase(StepPhase phase) {
    graph().phases.push_back({phase.name});
    make_.enter(static_cast<std::uint32_t>(graph().phases.size()) - 1);
    turn_.clear();
    for (NodeId id = 0; id < source_.graph.size(); ++id) {
      const Op op = source_.graph[id].op;
      const bool shared = op == Op::parameter || op == Op::constant || op == Op::state;
      if (!shared) copied_[id] = kNoNode;
    }
    return result_.phases.emplace_back(std::move(phase));
  }

  // The step graph's node for a node of the model in the current phase; created on first use.
  NodeId copy(NodeId wanted) {
    if (copied_[wanted] != kNoNode) return copied_[wanted];
    const std::string phase = result_.phases.back().name;
    const auto ends = [&](NodeId id) { return copied_[id] != kNoNode || is_sample_count(source_.graph, id); };
    for (const NodeId id : ir::needed_nodes(source(), wanted, ends)) {
      if (copied_[id] == kNoNode) copied_[id] = copy_node(id, phase);
    }
    return copied_[wanted];
  }

  NodeId copy_node(NodeId id, const std::string& phase) {
    const ir::Node& node = source()[id];
    if (is_sample_count(source_.graph, id)) return make_.sample_count(node.type.dtype);
    if (node.op == Op::input) {
      throw Error(ErrorKind::input, "input.unbound",
                  fmt::format("phase {} has no data for the input '{}'", phase, node.name),
                  phase == "predict" ? "an output must not depend on a target" : "");
    }
    if (node.op == Op::dropout && phase != "train") return copied_[node.inputs[0]];
    std::vector<NodeId> inputs;
    for (NodeId input : node.inputs) inputs.push_back(copied_[input]);
    AttrList attrs = node.attrs.list();
    for (auto& [name, value] : attrs) {
      if (name != "key") continue;
      const auto other = static_cast<std::size_t>(std::get<std::int64_t>(value));  // id + 1 of the stream's node
      value = stream_key(other > 0 ? source()[static_cast<NodeId>(other - 1)].name : node.name);
    }
    make_.at(node.source);
    const NodeId result = make_.add(name_of(node.op), std::move(inputs), attrs);
    make_.at({});
    if (node.phase != ir::kShared) {
      std::string name = fmt::format("{}/{}", phase, node.name);
      // Values recomputed from updated parameters get the suffix of the turn.
      if (!turn_.empty() && make_.find(name) != kNoNode) name += turn_;
      make_.rename(result, name);
    } else if (node.op == Op::parameter || node.op == Op::state) {
      make_.rename(result, node.name);  // constants keep generated names
    }
    if (node.op == Op::parameter) result_.parameters.emplace_back(node.name, result);
    if (const auto scalar = source_.runtime.find(id); scalar != source_.runtime.end())
      result_.runtime.emplace_back(result, scalar->second);
    return result;
  }

  NodeId add_ring(const StepPhase& phase, const std::string& name, NodeId value) {
    if (make_.type(value).shape.rank() != 0) {
      throw Error(ErrorKind::input, "metric.scalar",
                  fmt::format("'{}' must be a scalar, it is {}", name, to_string(make_.type(value))),
                  "mean(...) makes a scalar");
    }
    const AttrList narrow = {{"dtype", make::dtype(DType::f32)}};
    value = is_wide() ? make_.add("cast", {value}, narrow) : make::cast(var(value), DType::f32).id;  // for widen()
    const NodeId ring = add_state(fmt::format("{}/{}:ring", phase.name, name), {DType::f32, {kRingSize}, 0}, "metric");
    graph()[ring].poll = true;
    // Between two polls, training may record many epochs. An evaluation records one, so its ring can be smaller.
    if (phase.name != "train") graph().phases.back().rings.push_back(ring);
    make_.add("assign", {ring, make_.add("record", {ring, value, counter_})});
    return ring;
  }
  Recorded& add_record(StepPhase& phase, const std::string& name, NodeId value) {
    return phase.recorded.emplace_back(Recorded{name, add_ring(phase, name, value)});
  }

  // Records a model value over all batches of an evaluation, as a mean or as the parts of a formula.
  void add_figure(StepPhase& phase, const std::string& name, NodeId value) {
    const MetricParts found = analysis_->parts(value);
    const bool is_loss = phase.recorded.empty();
    if (found.is_mean || !found.problem.empty()) {
      if (!found.is_mean && !is_loss && phase.needs_one_batch.empty()) {
        phase.needs_one_batch =
            fmt::format("the metric '{}' would depend on the batches of '{}': {}", name, phase.split, found.problem);
      }
      add_record(phase, name, copy(value));
      return;
    }
    Recorded recorded{.name = name, .formula = formula(value, found.parts)};
    for (const MetricPart& part : found.parts) {
      const NodeId whole = copy(part.node);
      const std::int64_t elements = make_.type(whole).shape.elements();
      const Var flat = make::reshape(var(whole), Shape{elements});
      for (std::int64_t i = 0; i < elements; ++i) {
        const Var element = make::op("slice", {flat}, {{"start", i}, {"stop", i + 1}});
        const std::string label = fmt::format("{}:part{}", name, recorded.parts.size() + 1);
        recorded.parts.push_back({add_ring(phase, label, make::reshape(element, Shape{}).id), part.how});
      }
    }
    phase.recorded.push_back(std::move(recorded));
  }

  std::size_t formula(NodeId value, const std::vector<MetricPart>& parts) {
    const auto [entry, fresh] = formulas_.emplace(value, result_.formulas.size());
    if (fresh) result_.formulas.push_back(metric_formula(source(), value, parts));
    return entry->second;
  }

  void finish_phase() { make_.add("assign", {counter_, make_.add("increment", {counter_})}); }

  void add_training() {
    StepPhase& phase = enter_split("train", *model_.data.find("train"));
    const bool joint = is_joint(objectives_.front().optimizer);
    if (joint || model_.train.stop_at) {
      result_.stop = add_state("train/stop:cause", {DType::f32, {}, 0}, "slot");
      runs_ = make::op("equal", {var(result_.stop), make::like(0, var(result_.stop))});
    }
    if (joint && objectives_.front().optimizer.name == "levenberg_marquardt") return add_least_squares(phase);
    if (joint) return add_joint_training(phase);
    std::vector<std::pair<NodeId, NodeId>> assigned;  // state, next value
    add_assignments(false, assigned);
    Var total;
    std::vector<Var> all_gradients;
    std::vector<NodeId> losses;
    std::vector<std::pair<NodeId, NodeId>> updated;
    for (const ObjectiveSpec& objective : objectives_) {
      if (!updated.empty()) take_turn(objective.name, updated);
      const NodeId loss = copy(objective.minimize.id);
      losses.push_back(loss);
      total = losses.size() == 1 ? var(loss) : total + var(loss);
      std::vector<NodeId> parameters;
      for (const Value parameter : objective.parameters) parameters.push_back(copy(parameter.id));
      std::vector<Var> gradient;
      for (const NodeId id : gradients(make_, loss, parameters)) gradient.push_back(var(id));
      for (std::size_t i = 0; i < parameters.size(); ++i) name_gradient(parameters[i], gradient[i].id);
      all_gradients.insert(all_gradients.end(), gradient.begin(), gradient.end());
      if (losses.size() == objectives_.size()) {
        add_record(phase, "loss", total.id);
        for (std::size_t i = 0; losses.size() > 1 && i < losses.size(); ++i)
          add_record(phase, objectives_[i].name, losses[i]);
      }
      const std::vector<NodeId> next = update(objective, parameters, std::move(gradient));
      for (std::size_t i = 0; i < next.size(); ++i) updated.emplace_back(objective.parameters[i].id, next[i]);
    }
    const auto is_after = [](const auto& assignment) { return assignment.after; };
    if (std::any_of(source_.assignments.begin(), source_.assignments.end(), is_after)) take_turn("after", updated);
    add_assignments(true, assigned);
    for (const auto& [state, value] : assigned)
      make_.add("assign",
                {state, runs_.make == nullptr ? value : make::op("where", {runs_, var(value), var(state)}).id});
    if (runs_.make != nullptr) add_stop(phase, total, {}, all_gradients);
    for (const auto& [parameter, node] : unmoved_) copied_[parameter] = node;
    finish_phase();
  }

  // Training with bfgs: the loss and its gradient are those of the trial point.
  void add_joint_training(StepPhase& phase) {
    phase.needs_one_batch = "the optimizer bfgs compares losses of the same rows, so a batch must hold the whole split";
    const ObjectiveSpec& objective = objectives_.front();
    std::vector<NodeId> parameters, trials;
    std::vector<Var> current, gradient;
    for (const Value parameter : objective.parameters) {
      parameters.push_back(copy(parameter.id));
      current.push_back(var(parameters.back()));
    }
    Bfgs bfgs(make_, current, runs_);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      trials.push_back(bfgs.trials()[i].id);
      copied_[objective.parameters[i].id] = trials[i];
    }
    const NodeId loss = copy(objective.minimize.id);
    for (const NodeId id : gradients(make_, loss, trials)) gradient.push_back(var(id));
    for (std::size_t i = 0; i < parameters.size(); ++i) name_gradient(parameters[i], gradient[i].id);
    const Bfgs::Result step = bfgs.step(make::cast(var(loss), DType::f32), gradient);
    add_record(phase, "loss", step.loss.id);
    add_stop(phase, step.loss, step.stalls, gradient);
    for (std::size_t i = 0; i < parameters.size(); ++i) copied_[objective.parameters[i].id] = parameters[i];
    finish_phase();
  }

  // Training with levenberg_marquardt: the forward pass runs twice on the same rows, the second time at the trial
  // point.
  void add_least_squares(StepPhase& phase) {
    const ObjectiveSpec& objective = objectives_.front();
    const OptimizerDef& optimizer = row_named("optimizer", optimizers(), objective.optimizer.name);
    const ir::Attrs attrs(optimizer.attributes,
                          {objective.optimizer.attributes.begin(), objective.optimizer.attributes.end()});
    std::vector<Var> parameters;
    std::vector<bool> decays;
    for (const Value parameter : objective.parameters) {
      parameters.push_back(var(copy(parameter.id)));
      decays.push_back(source_.parameters.at(parameter.id).decay);
    }
    LevenbergMarquardt optimizes(make_, parameters, decays, attrs, runs_);
    const NodeId loss = copy(objective.minimize.id);
    const std::vector<Var> trials = optimizes.trials(var(loss)), gradient = optimizes.gradients();
    std::vector<std::pair<NodeId, NodeId>> moved;
    for (std::size_t i = 0; i < trials.size(); ++i) {
      name_gradient(parameters[i].id, gradient[i].id);
      moved.emplace_back(objective.parameters[i].id, trials[i].id);
    }
    result_.equations = optimizes.equations();
    take_turn("trial", moved);
    const Var stalls = optimizes.step(var(loss), var(copy(objective.minimize.id)));
    add_record(phase, "loss", loss);
    add_stop(phase, var(loss), stalls, gradient);
    for (const auto& [name, state] : optimizes.numbers()) result_.optimizer.emplace_back(name, state.id);
    for (const auto& [parameter, node] : unmoved_) copied_[parameter] = node;
    finish_phase();
  }

  // Updates and records the cause for which training stops. `stalls`: bool scalar, or null.
  void add_stop(StepPhase& phase, Var loss, Var stalls, const std::vector<Var>& gradient) {
    const auto cause = [&](StopCause one) { return make::like(static_cast<double>(one), var(result_.stop)); };
    Var next = cause(StopCause::none);
    if (stalls.make != nullptr) next = make::op("where", {stalls, cause(StopCause::no_descent), next});
    if (model_.train.stop_at && model_.train.stop_at->gradient > 0 && !gradient.empty()) {
      Var largest;
      for (const Var one : gradient) {
        const Var size = make::op("max", {make::op("abs", {one})});
        largest = largest.make == nullptr ? size : make::op("maximum", {largest, size});
      }
      const Var flat = make::op("less_equal", {largest, make::like(model_.train.stop_at->gradient, largest)});
      next = make::op("where", {flat, cause(StopCause::gradient), next});
    }
    if (model_.train.stop_at) {
      const Var reached = make::op("less_equal", {loss, make::like(model_.train.stop_at->loss, loss)});
      next = make::op("where", {reached, cause(StopCause::loss), next});
    }
    next = make::op("where", {runs_, next, var(result_.stop)});
    phase.stop_ring = add_ring(phase, "stop", next.id);
    make_.add("assign", {result_.stop, next.id});
  }

  void add_assignments(bool after, std::vector<std::pair<NodeId, NodeId>>& to) {
    for (const auto& assignment : source_.assignments) {
      if (assignment.after != after) continue;
      const NodeId value = copy(assignment.value);
      to.emplace_back(copy(assignment.state), value);
    }
  }

  // Makes later nodes use the updated values of the `updated` parameters (model node, next value) and recompute their
  // dependents. Gradients do not flow back through an update.
  void take_turn(std::string_view name, std::vector<std::pair<NodeId, NodeId>>& updated) {
    turn_ = fmt::format(":{}", name);
    std::vector<NodeId> changed;
    for (const auto& [parameter, next] : updated) {
      changed.push_back(parameter);
      unmoved_.emplace_back(parameter, copied_[parameter]);
    }
    const std::vector<bool> depends = ir::depending_on(source(), changed);
    for (NodeId id = 0; id < depends.size(); ++id) {
      if (depends[id]) copied_[id] = kNoNode;
    }
    for (const auto& [parameter, next] : updated) copied_[parameter] = make::op("stop_gradient", {var(next)}).id;
    updated.clear();
  }

  void name_gradient(NodeId parameter, NodeId gradient) {
    const std::string name = fmt::format("train/{}:gradient", graph()[parameter].name);
    const bool named = graph()[gradient].name.find('/') != std::string::npos;
    if (graph()[gradient].phase != ir::kShared && !named) make_.rename(gradient, name);
  }

  // Adds the updates and returns the parameters' next values.
  std::vector<NodeId> update(const ObjectiveSpec& objective, const std::vector<NodeId>& parameters,
                             std::vector<Var> gradient) {
    const OptimizerSpec& spec = objective.optimizer;
    const OptimizerDef& optimizer = row_named("optimizer", optimizers(), spec.name);
    const ir::Attrs attrs(optimizer.attributes, {spec.attributes.begin(), spec.attributes.end()});
    const std::map<std::string, Var, std::less<>> runtime = runtime_attributes(spec, optimizer, attrs, objective.name);
    Var rate = runtime.contains("lr")
                   ? runtime.at("lr")
                   : var(spec.lr ? schedule_value(make_, *spec.lr, counter_, [this] { return epoch_steps(); })
                                 : make_.scalar(attrs.real("lr"), DType::f32));
    if (model_.train.lr_plateau) {
      if (result_.lr_factor == kNoNode) result_.lr_factor = add_state("train/lr:factor", {DType::f32, {}, 0}, "slot");
      rate = rate * var(result_.lr_factor);
    }
    const Var one = var(make_.scalar(1, DType::f32));
    const Var steps = make::cast(var(counter_), DType::f32);
    const Var updates =
        objective.every == 1 ? steps : make::op("floor", {steps / static_cast<double>(objective.every)});
    const Var time = updates + one, due = when_running(objective.every == 1 ? Var{} : is_due(objective));
    if (model_.train.clip_value > 0) clip_value(gradient, model_.train.clip_value);
    if (const Factor norm = max_norm(); !norm.is_zero()) clip_norm(gradient, norm);
    std::vector<NodeId> updated;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      UpdateContext context{make_, attrs, var(parameters[i]), gradient[i], rate, time, runtime, due};
      const bool decays = source_.parameters.at(objective.parameters[i].id).decay;
      const Var next = context.if_due(update_parameter(optimizer, context, decays), context.parameter);
      make_.add("assign", {parameters[i], next.id});
      updated.push_back(next.id);
    }
    return updated;
  }

  Var when_running(Var due) {
    if (runs_.make == nullptr || due.make == nullptr) return runs_.make == nullptr ? due : runs_;
    return make::op("logical_and", {due, runs_});
  }

  // TrainSpec::clip_norm; all objectives share one state.
  Factor max_norm() {
    if (!model_.train.clip_norm_at_run_time) return {model_.train.clip_norm};
    if (clip_norm_ == kNoNode) {
      clip_norm_ = add_state("train:clip_norm", {DType::f32, {}, 0}, "slot");
      result_.runtime.emplace_back(clip_norm_, model_.train.clip_norm);
    }
    return {model_.train.clip_norm, var(clip_norm_)};
  }

  // Whether this step, the last of each `every` steps, updates the objective's parameters. A state counts the steps
  // since the last update, because f32 cannot represent all step numbers.
  Var is_due(const ObjectiveSpec& objective) {
    const Var waited = var(add_state(fmt::format("train/{}:waited", objective.name), {DType::f32, {}, 0}, "slot"));
    const Var due = make::op("equal", {waited, make::like(static_cast<double>(objective.every - 1), waited)});
    const Var next = make::op("where", {due, make::like(0, waited), waited + 1.0});
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
      const NodeId state = add_state(fmt::format("train:{}{}{}", objective, objective.empty() ? "" : ".", name),
                                     {DType::f32, {}, 0}, "slot");
      result_.runtime.emplace_back(state, attrs.real(name));
      states.emplace(name, var(state));
    }
    return states;
  }

  NodeId epoch_steps() {
    if (graph().phases.back().epoch_steps != kNoNode) return graph().phases.back().epoch_steps;
    if (result_.phases.back().rows_vary) {
      throw Error(ErrorKind::input, "schedule.rows",
                  "a schedule in epochs needs a training split whose number of rows does not vary",
                  "give its length in steps");
    }
    const Var steps = make::source(make_, "constant", {}, {{"values", std::vector<double>{1}}});
    return graph().phases.back().epoch_steps = add_named("train/epoch:steps", steps);
  }

  void add_evaluation(const Split& split) {
    if (objectives_.empty()) return;
    StepPhase& phase = enter_split("evaluate." + split.name, split);
    if (objectives_.size() == 1) {
      add_figure(phase, "loss", objectives_[0].minimize.id);
    } else {
      Var total = var(copy(objectives_[0].minimize.id));
      for (std::size_t i = 1; i < objectives_.size(); ++i) total = total + var(copy(objectives_[i].minimize.id));
      add_record(phase, "loss", total.id);
    }
    for (const ObjectiveSpec& objective : objectives_) {
      if (!objective.name.empty()) add_figure(phase, objective.name, objective.minimize.id);
    }
    for (const MetricSpec& metric : model_.train.metrics) {
      metric.value.valid() ? add_figure(phase, metric.name, metric.value.id) : add_built_in(phase, metric.name);
    }
    finish_phase();
  }

  // Adds a built-in metric per (output, target) pair; with several targets its name includes the target: "mse.price".
  void add_built_in(StepPhase& phase, const std::string& name) {
    const MetricDef* def = find_metric(name);
    if (def == nullptr) throw std::logic_error("no built-in metric " + name);
    const std::vector<const OutputSpec*> answered = measured(model_, *def);
    if (answered.empty()) {
      throw Error(ErrorKind::input, "metric.target", fmt::format("the metric '{}' needs an output with a target", name),
                  R"(say which target an output answers: "outputs": {"prediction": "y"})");
    }
    const std::vector<std::string> names = reported_names(model_, {name, {}});
    for (std::size_t i = 0; i < answered.size(); ++i) {
      const OutputSpec* output = answered[i];
      const bool is_score = needs_score(*def, *output);
      if (phase.rows_vary && (is_score || def->finish == MetricDef::Finish::r2)) {
        throw Error(ErrorKind::input, "metric.rows",
                    fmt::format("{} needs a split whose number of rows does not vary, which that of '{}' does", name,
                                phase.split),
                    "mse needs none");
      }
      if (is_score) {
        phase.recorded.push_back({.name = names[i], .score = def, .target = output->target});
        continue;
      }
      NodeId operands[] = {copy(output->value.id), copy(model_.graph.find(output->target).id)};
      const bool knows_differences = def->power != 0 && log_of(output->target) == LogTransform::none;
      const double unit = knows_differences ? weigh(operands, output->target) : undo(operands, output->target);
      Recorded& recorded = add_record(phase, names[i], call(make_, def->function, operands));
      recorded.unit = std::pow(unit, def->power);
      recorded.finish = def->finish;
      if (def->finish == MetricDef::Finish::r2)
        recorded.variance = variance(*model_.data.find(phase.split), output->target);
    }
  }

  // Whether the metric is not a mean over all elements, so that the host must compute it. As in scikit-learn, rmse and
  // r2 are means over columns, and accuracy for several labels compares whole rows, with threshold 0 for logits.
  bool needs_score(const MetricDef& def, const OutputSpec& output) const {
    if (def.function.empty()) return true;
    const TensorType target = source_.graph[model_.graph.find(output.target).id].type;
    const bool several = target.dtype == DType::f32 && target.shape.with_batch(1).elements() > 1;
    if (def.of_classes == nullptr) return several && def.finish != MetricDef::Finish::none;
    const ClassOutput how = class_outputs(model_)[static_cast<std::size_t>(&output - model_.outputs.data())];
    if (!how.is_class || target.dtype != DType::f32) return false;
    return how.numbers == ClassOutput::Numbers::sigmoid_logits ||
           (several && how.numbers != ClassOutput::Numbers::softmax_logits);
  }

  // Variance of a split's column about the mean of each feature, in original units. Computed on the host because it
  // depends on data only, and in double to avoid cancellation.
  double variance(const Split& split, const std::string& target) const {
    const auto column = std::ranges::find(split.columns, target, &std::pair<std::string, HostTensor>::first);
    if (column == split.columns.end()) return 0;
    const HostTensor& tensor = column->second;
    if (!is_float(tensor.dtype()) || tensor.shape().elements() == 0) return 0;
    if (tensor.shape()[0] == 1) return std::nan("");
    const std::vector<double> values = as_doubles(tensor);
    const std::size_t width = values.size() / static_cast<std::size_t>(tensor.shape()[0]);
    const LogTransform log = log_of(target);
    const std::vector<double> units = units_of(target, width);
    // Without a log transform the shift cancels in the differences.
    const auto number = [&](std::size_t i) {
      const double value = values[i];
      if (log == LogTransform::none) return value;
      const Standardization& fitted = *fitted_of(target).front();
      return invert_log(log, value * fitted.scale[i % width] + fitted.shift[i % width]);
    };
    std::vector<double> mean(width, 0.0);
    for (std::size_t i = 0; i < values.size(); ++i) mean[i % width] += number(i);
    for (double& m : mean) m /= static_cast<double>(tensor.shape()[0]);
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double unit = log == LogTransform::none ? units[i % width] : 1;
      const double d = (number(i) - mean[i % width]) * unit;
      sum += d * d;
    }
    return sum / static_cast<double>(values.size());
  }

  // Original units per unit of the standardized target, by column.
  std::vector<double> units_of(const std::string& target, std::size_t width) const {
    std::vector<double> units(width, 1.0);
    for (const Standardization* fitted : fitted_of(target)) {
      for (std::size_t i = 0; i < width; ++i) units[i] *= fitted->scale[i % fitted->scale.size()];
    }
    return units;
  }

  std::span<const Standardization* const> fitted_of(const std::string& input) const {
    const auto found = fitted_.find(input);
    return found == fitted_.end() ? std::span<const Standardization* const>() : found->second;
  }

  LogTransform log_of(const std::string& target) const {
    return fitted_of(target).empty() ? LogTransform::none : fitted_of(target).front()->log;
  }

  // One number per column of `target`, in the shape of its samples.
  Var constant_row(const std::vector<double>& values, const std::string& target) {
    const std::span<const std::int64_t> dims = source_.graph[model_.graph.find(target).id].type.shape.dims();
    Shape shape(dims.empty() ? dims : dims.subspan(1));
    if (shape.rank() == 0) shape.push_back(static_cast<std::int64_t>(values.size()));
    return make::source(make_, "constant", {DType::f32, shape}, {{"values", values}});
  }

  // Transforms values back to the original units of the target. Returns their unit, 1.
  double undo(std::span<NodeId> values, const std::string& target) {
    for (const Standardization* fitted : fitted_of(target)) {
      for (NodeId& value : values) {
        const Var shift = constant_row(fitted->shift, target);
        value = (var(value) * constant_row(fitted->scale, target) + shift).id;
        if (fitted->log != LogTransform::none) value = call(make_, "exp", {{value}});
        if (fitted->log == LogTransform::log1p) value = (var(value) - var(make_.scalar(1, DType::f32))).id;
      }
    }
    return 1;
  }

  // For metrics of differences, where shifts cancel: scales columns to a common unit, which is returned. Undoing the
  // shift in f32 would lose an error of 1 in 2e9, and without the common unit its square might overflow.
  double weigh(std::span<NodeId> values, const std::string& target) {
    if (fitted_of(target).empty()) return 1;
    std::vector<double> units = units_of(target, fitted_of(target).front()->scale.size());
    double largest = 0;
    for (const double unit : units) largest = std::max(largest, std::abs(unit));
    if (units.size() == 1) return largest;
    for (double& unit : units) unit /= largest;
    const Var row = constant_row(units, target);
    for (NodeId& value : values) value = (var(value) * row).id;
    return largest;
  }

  void add_prediction() {
    StepPhase& predict = start_phase({.name = "predict"});
    std::vector<NodeId> outputs;
    for (const OutputSpec& output : model_.outputs) outputs.push_back(output.value.id);
    const std::vector<bool> is_needed = ir::needed_by(source(), outputs);
    for (NodeId input : source_.inputs) {
      if (!is_needed[input]) continue;  // a target (see "outputs" in model-format.md)
      const std::string& name = source_.graph[input].name;
      copied_[input] = add_input("predict/" + name, source_.graph[input].type);
      predict.inputs.emplace_back(name, copied_[input]);
    }
    copied_[source_.step] = make_.scalar(0, DType::u64);  // same random samples in every prediction
    predict.count = add_input("predict/batch:count", {DType::i32, {}, 0});
    graph().phases.back().row_count = predict.count;
    for (const OutputSpec& output : model_.outputs) {
      predict.outputs.push_back(copy(output.value.id));
      graph()[predict.outputs.back()].keep = true;
    }
  }

  const Model& model_;
  const GraphBuilder::Impl& source_;
  const std::vector<ObjectiveSpec> objectives_;
  const ir::Graph in_training_, otherwise_;
  std::vector<std::pair<NodeId, NodeId>> unmoved_;  // updated parameters, with their original nodes
  std::string turn_;  // name suffix for nodes of the current objective; empty for the first
  StepGraph result_;
  ir::Builder make_{result_.graph};
  std::vector<NodeId> copied_;  // node in the current phase, indexed by model node
  std::map<std::string, NodeId> data_;
  std::map<std::string_view, std::vector<const Standardization*>> fitted_;  // keyed by input
  std::optional<MetricAnalysis> analysis_;                                  // evaluation graph
  std::map<NodeId, std::size_t> formulas_;  // index in result_.formulas, keyed by model value
  NodeId counter_ = kNoNode;
  Var runs_ = {};               // bool scalar: training has not stopped; null if it never stops early
  NodeId clip_norm_ = kNoNode;  // state of a runtime clip_norm
};

}  // namespace

double finished(const Recorded& recorded, double mean) {
  mean *= recorded.unit;
  switch (recorded.finish) {
    case MetricDef::Finish::none:
      return mean;
    case MetricDef::Finish::root:
      return std::sqrt(mean);
    case MetricDef::Finish::r2:
      // For a constant target, R² is defined as 1 for exact predictions and 0 otherwise.
      return recorded.variance != 0 ? 1 - mean / recorded.variance : mean == 0 ? 1 : 0;
  }
  return mean;
}

void set_capacity(StepGraph& step, std::int64_t capacity) {
  for (StepPhase& phase : step.phases) {
    phase.batches.capacity = capacity;
    const std::int64_t batches = phase.batches.count();
    const bool is_sized = phase.name != "train" && !phase.rows_vary;
    phase.ring = is_sized ? std::clamp<std::int64_t>(batches, 1, kRingSize) : kRingSize;
    if (batches <= 1 || phase.needs_one_batch.empty()) continue;
    if (phase.name == "train") {
      throw Error(ErrorKind::input, "optimizer.batches", phase.needs_one_batch, R"("batch": "all" in "train")");
    }
    throw Error(ErrorKind::input, "metric.batches", phase.needs_one_batch,
                "write it with sums and means of rows, as mean(square(y)) - mean(y)^2 for the variance, or let a batch "
                "hold the whole split");
  }
}

std::vector<ObjectiveSpec> objectives_of(const Model& model) {
  const GraphBuilder::Impl& graph = model.graph.impl();
  const TrainSpec& train = model.train;
  for (const ObjectiveSpec& one : train.objectives) {
    graph.node(one.minimize);  // throws Error for a value of another builder
    for (const Value parameter : one.parameters) graph.node(parameter);
  }
  if (!train.objectives.empty() || !train.minimize.valid()) return train.objectives;
  const ir::NodeId loss = graph.node(train.minimize);
  const std::vector<bool> reached = ir::needed_by(graph.graph, {&loss, 1});
  ObjectiveSpec only{"", train.minimize, {}, train.optimizer};
  for (const ir::NodeId id : graph.trainable()) {
    if (reached[id]) only.parameters.push_back(graph.value(id));
  }
  return {only};
}

ir::Graph with_phase_choices(const ir::Builder& model, bool training) {
  ir::Graph graph = model.graph();
  const ir::NodeId flag = model.training_or_none();
  for (ir::Node& node : graph.nodes) {
    if (node.op != Op::where || node.inputs[0] != flag) continue;
    // Replaces the choice by the selected side: a reshape to the same shape, which is a differentiable view, or a
    // broadcast if the choice would broadcast that side.
    node.inputs = {node.inputs[training ? 1 : 2]};
    const TensorType& side = graph[node.inputs[0]].type;
    const bool is_whole = side.shape == node.type.shape && side.rows == node.type.rows;
    node.op = is_whole ? Op::reshape : Op::broadcast_to;
    node.def = &op_def(node.op);
    AttrList attrs = {{"shape", make::dims(node.type.shape)}};
    if (!is_whole) attrs.emplace_back("rows", node.type.rows);
    node.attrs = ir::Attrs(node.def->attrs, attrs);
  }
  return graph;
}

StepGraph build_step_graph(const Model& model) {
  check_usable(model);
  return StepGraphBuilder(model).run();
}

}  // namespace graphrun
