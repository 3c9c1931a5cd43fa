#include "graph/frontend/model_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/format/fields.h"
#include "graph/frontend/library/optimizers.h"
#include "graph/ir/needed.h"
#include "graphrun/class_outputs.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

class Checker {
 public:
  explicit Checker(const Model& model) : model_(model), graph_(model.graph.impl()) {
    for (const ir::NodeId id : graph_.inputs) inputs_.emplace(graph_.graph[id].name, &graph_.graph[id]);
  }

  void run() {
    check_values();
    std::set<std::string_view> names;
    for (const Split& split : model_.data.splits) {
      if (!names.insert(split.name).second) report("data.split", fmt::format("two splits are named '{}'", split.name));
      check_split(split);
    }
    for (const Standardization& fitted : model_.data.standardizations) check_fitted(fitted);
    check_numbers();
    check_joint();
    if (!found_.empty()) throw Error(ErrorKind::input, std::move(found_));
  }

 private:
  void report(std::string code, std::string message, std::string hint = {}) {
    found_.push_back({.code = std::move(code), .message = std::move(message), .hint = std::move(hint)});
  }

  void check_value(const std::string& role, Value value) {
    try {
      graph_.node(value);
    } catch (const Error& error) {
      const Diagnostic& cause = error.diagnostics().front();
      report(cause.code, fmt::format("{}: {}", role, cause.message));
    }
  }

  void check_values() {
    if (model_.train.minimize.valid()) check_value("minimize", model_.train.minimize);
    std::set<std::string> reported = {"loss"};
    check_objectives(reported);
    for (const MetricSpec& metric : model_.train.metrics) {
      if (metric.value.valid()) check_value(fmt::format("the metric '{}'", metric.name), metric.value);
      if (!metric.value.valid() && find_metric(metric.name) == nullptr) {
        report("metric.unknown", fmt::format("the metric '{}' has no value and is not built in", metric.name));
      }
      if (metric.value.valid() && find_metric(metric.name)) {
        report("metric.name", fmt::format("'{}' is the name of a built-in metric", metric.name),
               "give it another name");
      }
      for (const std::string& name : reported_names(model_, metric)) {
        if (!reported.insert(name).second) {
          report("metric.name", fmt::format("two metrics are reported as '{}'", name),
                 name == "loss" ? "the minimized value is reported as the loss" : "");
        }
      }
    }
    for (const OutputSpec& output : model_.outputs) {
      check_value(fmt::format("the output '{}'", output.name), output.value);
      if (!output.target.empty() && find_input(output.target) == nullptr) {
        report("output.target",
               fmt::format("the output '{}' has the target '{}', which is not an input", output.name, output.target));
      }
    }
  }

  void check_objectives(std::set<std::string>& reported) {
    const TrainSpec& train = model_.train;
    if (train.minimize.valid() && !train.objectives.empty()) {
      report("train.objectives", "train: minimize and objectives are both given", "each objective has its own");
    }
    std::map<ir::NodeId, std::string_view> updated_by;
    for (const ObjectiveSpec& one : train.objectives) {
      const auto fail = [&](const std::string& what, std::string hint = {}) {
        report("train.objectives", fmt::format("the objective '{}': {}", one.name, what), std::move(hint));
      };
      if (!is_name(one.name)) fail("the name is invalid", std::string(kNameRule));
      if (!reported.insert(one.name).second) fail("the name is taken", "give it another name");
      check_value(fmt::format("the objective '{}'", one.name), one.minimize);
      if (one.every < 1 || one.every > kMaxEvery)
        fail(fmt::format("every {} steps: from 1 to {}", one.every, kMaxEvery));
      if (one.parameters.empty()) fail("it has no parameters: there is nothing to train");
      for (const Value value : one.parameters) {
        if (value.owner != graph_.number || value.id >= graph_.graph.size()) {
          check_value(fmt::format("the objective '{}'", one.name), value);
          continue;
        }
        const ir::Node& node = graph_.graph[value.id];
        const auto found = graph_.parameters.find(value.id);
        if (found == graph_.parameters.end() || !found->second.trainable) {
          fail(fmt::format("{} is not a trained parameter", node.name));
        } else if (const auto [entry, fresh] = updated_by.emplace(value.id, one.name); !fresh) {
          fail(fmt::format("{} is updated by '{}' already", node.name, entry->second),
               "a parameter belongs to one objective: minimize a sum of losses to update it by both");
        }
      }
    }
  }

  const ir::Node* find_input(std::string_view name) const {
    const auto found = inputs_.find(name);
    return found == inputs_.end() ? nullptr : found->second;
  }

  // Elements per sample.
  static std::int64_t columns_of(const TensorType& type) { return type.shape.with_batch(1).elements(); }

  void check_split(const Split& split) {
    if (split.columns.empty() && (split.declared < 0 || split.declared > kMaxElements)) {
      report("data.rows", fmt::format("the split '{}' declares {} rows", split.name, split.declared));
    }
    std::map<std::string_view, int> times;
    for (const auto& [name, tensor] : split.columns) ++times[name];
    for (const auto& [name, tensor] : split.columns) check_column(split, name, tensor, times[name]);
  }

  void check_column(const Split& split, const std::string& name, const HostTensor& tensor, int times) {
    const auto fail = [&](std::string code, const std::string& what) {
      report(std::move(code), fmt::format("the split '{}': {}", split.name, what));
    };
    const TensorType type{tensor.dtype(), tensor.shape(), 0};
    if (tensor.shape().rank() == 0 || tensor.shape().elements() == 0) {
      return fail("data.shape", fmt::format("'{}' is {}: it holds no rows", name, to_string(type)));
    }
    const auto& [first_name, first] = split.columns.front();
    if (first.shape().rank() > 0 && tensor.shape()[0] != first.shape()[0]) {
      fail("data.rows", fmt::format("'{}' has {} rows, '{}' has {}: a row of one belongs to a row of the other", name,
                                    tensor.shape()[0], first_name, first.shape()[0]));
    }
    if (times > 1) fail("data.column", fmt::format("'{}' is given twice", name));
    const ir::Node* input = find_input(name);
    if (input == nullptr) return;
    const bool is_wide = model_.train.precision == Precision::fp64 && input->type.dtype == DType::f32;
    if (input->type.dtype != tensor.dtype() && !(is_wide && tensor.dtype() == DType::f64)) {
      fail("data.dtype", fmt::format("'{}' is {}, the input is {}", name, to_string(type), to_string(input->type)));
    }
    if (columns_of(input->type) * tensor.shape()[0] != tensor.shape().elements()) {
      fail("data.shape", fmt::format("'{}' is {}, the input is {}: a row has not as many numbers", name,
                                     to_string(type), to_string(input->type)));
    }
  }

  void check_fitted(const Standardization& fitted) {
    const auto fail = [&](const std::string& what) {
      report("data.standardization", fmt::format("the numbers fitted to '{}': {}", fitted.input, what));
    };
    const ir::Node* input = find_input(fitted.input);
    if (input == nullptr) return fail("there is no such input");
    if (input->type.dtype != DType::f32) return fail(fmt::format("the input is {}", to_string(input->type)));
    const auto columns = static_cast<std::size_t>(columns_of(input->type));
    if (fitted.shift.size() != columns || fitted.scale.size() != columns) {
      fail(fmt::format("{} of shift and {} of scale, for {} columns", fitted.shift.size(), fitted.scale.size(),
                       columns));
    }
    for (const double x : fitted.shift) {
      if (!std::isfinite(x)) return fail(fmt::format("a shift of {}", x));
    }
    for (const double x : fitted.scale) {
      if (!std::isfinite(x) || x == 0) return fail(fmt::format("a scale of {}", x));
    }
  }

  void check_numbers() {
    const TrainSpec& train = model_.train;
    check_bounds("train", train_fields());
    if (train.evaluate_every > 0 && train.evaluate_every_steps > 0) {
      report("train.evaluate_every", "train: evaluate_every and evaluate_every_steps are both given", "leave one out");
    }
    if (train.early_stopping) check_monitor("train: early_stopping", *train.early_stopping, early_stopping_fields());
    if (train.lr_plateau) check_monitor("train: lr_plateau", *train.lr_plateau, lr_plateau_fields());
    if (train.shards > kMaxShards || (train.shards & (train.shards - 1)) != 0)
      report("train.shards", fmt::format("train: shards: {} is not a power of two up to {}", train.shards, kMaxShards));
    check_rprop(train.optimizer);
    for (const ObjectiveSpec& one : train.objectives) check_rprop(one.optimizer);
    if (!train.threshold) return;
    check_validation("train: threshold");
    const std::vector<ClassOutput> outputs = class_outputs(model_);
    if (std::ranges::none_of(outputs, &ClassOutput::has_threshold))
      report("train.threshold", "train: threshold: no output has two classes or several labels", "leave it out");
  }

  void check_rprop(const OptimizerSpec& optimizer) {
    if (optimizer.name == "rprop" && (optimizer.lr || model_.train.lr_plateau))
      report("optimizer.lr",
             "the optimizer rprop: lr is the initial step size, so it can have neither schedule nor lr_plateau",
             "give lr a number and leave lr_plateau out");
  }

  // bfgs compares losses between steps, so every step must compute the same function of the parameters;
  // levenberg_marquardt within a step.
  void check_joint() {
    const TrainSpec& train = model_.train;
    std::string_view name = train.optimizer.name;
    for (const ObjectiveSpec& one : train.objectives)
      if (is_joint(one.optimizer)) name = one.optimizer.name;
    const bool is_bfgs = name == "bfgs";
    const auto fail = [&](const std::string& what, std::string hint = {}) {
      report("optimizer.joint", fmt::format("the optimizer {}: {}", name, what), std::move(hint));
    };
    const auto joint = [](const ObjectiveSpec& one) { return is_joint(one.optimizer); };
    if (std::ranges::any_of(train.objectives, joint))
      return fail("it updates all parameters, so it cannot train one of several objectives",
                  "minimize a sum of losses");
    if (!train.objectives.empty() || !train.minimize.valid() || !is_joint(train.optimizer)) return;
    if (!train.optimizer.runtime.empty()) fail("it has no runtime hyperparameters", "give its keys numbers");
    if (train.shuffle && is_bfgs) fail("shuffle would change the order of the sums between steps", "leave shuffle out");
    if (train.clip_norm > 0 || train.clip_norm_at_run_time || train.clip_value > 0)
      fail(fmt::format("{} is not supported: the {} limits the step", train.clip_value > 0 ? "clip_value" : "clip_norm",
                       is_bfgs ? "line search" : "damping"),
           "leave it out");
    if (train.lr_plateau)
      fail(fmt::format("lr_plateau is not supported: {} has no learning rate", name), "leave it out");
    if (!graph_.assignments.empty())
      fail("a state of the model changes between steps", "it supports neither batch_norm nor assignments");
    const ir::NodeId loss = train.minimize.id;
    for (const ir::NodeId id : ir::needed_nodes(graph_.graph, loss, [](ir::NodeId) { return false; })) {
      const ir::Node& node = graph_.graph[id];
      if (ir::find_attr(node.def->attrs, "key") == nullptr || !(is_bfgs || node.op == Op::dropout)) continue;
      return fail(
          fmt::format("the loss depends on {}{}", name_of(node.op), is_bfgs ? ", which differs between steps" : ""),
          "leave it out");
    }
  }

  // Accepts a default outside the bounds, which marks a key that was left out.
  void check_bounds(std::string_view part, const Fields& fields) {
    for (const Field& field : fields) {
      if (!field.low || field.name == "seed") continue;  // all 64 bits are valid
      const AttrValue value = field.get(field, model_.train);
      const auto* real = std::get_if<double>(&value);
      if (value == field.fallback || (fits(field, value) && (real == nullptr || std::isfinite(*real)))) continue;
      report("train.range",
             fmt::format("{}: {} must be {}, got {}", part, field.name, expected(field), ir::to_string(value)));
    }
  }

  void check_monitor(std::string_view part, const Monitor& monitor, const Fields& fields) {
    if (const std::optional<Diagnostic> problem = monitor_problem(model_, monitor))
      report(problem->code, fmt::format("{}: {}", part, problem->message), problem->hint);
    check_bounds(part, fields);
    check_validation(part);
  }

  void check_validation(std::string_view part) {
    if (model_.data.find("train") == nullptr || model_.data.find("validation") != nullptr) return;
    report("train.no_validation", fmt::format("{} goes by the split 'validation', which is not there", part),
           model_.data.find("test") != nullptr
               ? R"(for instance "split": [0.7, 0.15, 0.15] in "data"; [0.8, 0.2] if the source has its own test rows)"
               : R"(for instance "split": [0.7, 0.15, 0.15] in "data")");
  }

  const Model& model_;
  const GraphBuilder::Impl& graph_;
  std::map<std::string_view, const ir::Node*> inputs_;
  std::vector<Diagnostic> found_;
};

// All names in the reports of a run, each with its metric; null for the loss and the objectives.
std::vector<std::pair<std::string, const MetricSpec*>> all_reported_names(const Model& model) {
  std::vector<std::pair<std::string, const MetricSpec*>> all = {{"loss", nullptr}};
  for (const ObjectiveSpec& one : model.train.objectives) all.emplace_back(one.name, nullptr);
  for (const MetricSpec& metric : model.train.metrics) {
    for (std::string& name : reported_names(model, metric)) all.emplace_back(std::move(name), &metric);
  }
  return all;
}

}  // namespace

void check_usable(const Model& model) {
  Checker(model).run();
}

std::optional<bool> monitor_rises(const Model& model, const Monitor& monitor) {
  if (monitor.mode != Monitor::Mode::automatic) return monitor.mode == Monitor::Mode::max;
  for (const auto& [name, metric] : all_reported_names(model)) {
    if (name != monitor.monitor) continue;
    if (metric == nullptr) return false;
    const MetricDef* def = metric->value.valid() ? nullptr : find_metric(metric->name);
    return def == nullptr ? std::nullopt : def->more_is_better;
  }
  return std::nullopt;
}

std::optional<Diagnostic> monitor_problem(const Model& model, const Monitor& monitor) {
  std::vector<std::string> names;
  for (auto& reported : all_reported_names(model)) names.push_back(std::move(reported.first));
  if (std::find(names.begin(), names.end(), monitor.monitor) == names.end()) {
    const std::string near = did_you_mean(monitor.monitor, names);
    return Diagnostic{.code = "train.monitor",
                      .message = fmt::format("'{}' is neither the loss nor a metric of the model", monitor.monitor),
                      .hint = near.empty() ? fmt::format("it can be {}", fmt::join(names, ", ")) : near};
  }
  if (monitor_rises(model, monitor)) return std::nullopt;
  return Diagnostic{.code = "train.monitor_mode",
                    .message = fmt::format("whether less or more of '{}' is better has to be said", monitor.monitor),
                    .hint = R"("mode": "min" or "mode": "max")"};
}

std::vector<std::string> graph_warnings(const Model& model) {
  const ir::Builder& builder = model.graph.impl().builder;
  std::vector<std::string> warnings;
  for (const ir::NodeId id : builder.kinks)
    warnings.push_back(fmt::format(
        "the second derivative of '{}' ({}) is 0, so a loss with second derivatives trains little or nothing "
        "through it; use tanh, softplus or sin",
        builder.graph()[id].name, name_of(builder.graph()[id].op)));
  return warnings;
}

std::vector<std::string> reported_names(const Model& model, const MetricSpec& metric) {
  const MetricDef* def = metric.value.valid() ? nullptr : find_metric(metric.name);
  if (def == nullptr) return {metric.name};
  std::vector<std::string> names;
  const auto answers = [](const OutputSpec& output) { return !output.target.empty(); };
  const bool several = std::count_if(model.outputs.begin(), model.outputs.end(), answers) > 1;
  for (const OutputSpec* output : measured(model, *def))
    names.push_back(several ? metric.name + "." + output->target : metric.name);
  if (names.empty()) names = {metric.name};
  return names;
}

std::vector<const OutputSpec*> measured(const Model& model, const MetricDef& def) {
  std::vector<const OutputSpec*> all, alike;
  const std::vector<ClassOutput> how = class_outputs(model);
  for (std::size_t i = 0; i < how.size(); ++i) {
    if (model.outputs[i].target.empty()) continue;
    all.push_back(&model.outputs[i]);
    if (how[i].is_class == (def.of_classes != nullptr)) alike.push_back(&model.outputs[i]);
  }
  return alike.empty() && !def.function.empty() ? all : alike;
}

}  // namespace graphrun
