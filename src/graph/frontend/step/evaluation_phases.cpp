// evaluation_phases.cpp: the evaluation phases of a step graph: the loss, the objectives, and the metrics of each split
// in original units.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "graph/frontend/library/functions.h"
#include "graph/frontend/model_check.h"
#include "graph/frontend/step/step_builder.h"
#include "graphrun/class_outputs.h"
#include "graphrun/elements.h"

namespace graphrun {
namespace {

using ir::NodeId;

std::vector<NodeId> roots_of(const StepBuilder& step) {
  std::vector<NodeId> roots;
  for (const ObjectiveSpec& objective : step.objectives) roots.push_back(objective.minimize.id);
  for (const OutputSpec& output : step.model.outputs) roots.push_back(output.value.id);
  return roots;
}

class EvaluationPhases {
 public:
  explicit EvaluationPhases(StepBuilder& step) : step_(step), analysis_(step.otherwise, roots_of(step)) {
    for (const Standardization& fitted : step.model.data.standardizations) fitted_[fitted.input].push_back(&fitted);
  }

  void add(const Split& split) {
    StepPhase& phase = step_.enter_split("evaluate." + split.name, split);
    if (step_.objectives.size() == 1) {
      add_figure(phase, "loss", step_.objectives[0].minimize.id);
    } else {
      Var total = step_.copy_var(step_.objectives[0].minimize.id);
      for (std::size_t i = 1; i < step_.objectives.size(); ++i)
        total = total + step_.copy_var(step_.objectives[i].minimize.id);
      step_.add_record(phase, "loss", total.id);
    }
    for (const ObjectiveSpec& objective : step_.objectives) {
      if (!objective.name.empty()) add_figure(phase, objective.name, objective.minimize.id);
    }
    for (const MetricSpec& metric : step_.model.train.metrics) {
      metric.value.valid() ? add_figure(phase, metric.name, metric.value.id) : add_built_in(phase, metric.name);
    }
    step_.finish_split();
  }

 private:
  // Records a model value over all batches of an evaluation, as a mean or as the parts of a formula.
  void add_figure(StepPhase& phase, const std::string& name, NodeId value) {
    const MetricParts found = analysis_.parts(value);
    const bool is_loss = phase.recorded.empty();
    if (found.is_mean || !found.problem.empty()) {
      if (!found.is_mean && !is_loss && phase.needs_one_batch.empty()) {
        phase.needs_one_batch =
            fmt::format("the metric '{}' would depend on the batches of '{}': {}", name, phase.split, found.problem);
      }
      step_.add_record(phase, name, step_.copy(value));
      return;
    }
    Recorded recorded{.name = name, .formula = formula(value, found.parts)};
    for (const MetricPart& part : found.parts) {
      const NodeId whole = step_.copy(part.node);
      const std::int64_t elements = step_.make.type(whole).shape.elements();
      const Var flat = make::reshape(step_.var(whole), Shape{elements});
      for (std::int64_t i = 0; i < elements; ++i) {
        const Var element = make::op("slice", {flat}, {{"start", i}, {"stop", i + 1}});
        const std::string label = fmt::format("{}:part{}", name, recorded.parts.size() + 1);
        recorded.parts.push_back({step_.add_ring(phase, label, make::reshape(element, Shape{}).id), part.how});
      }
    }
    phase.recorded.push_back(std::move(recorded));
  }

  std::size_t formula(NodeId value, const std::vector<MetricPart>& parts) {
    const auto [entry, fresh] = formulas_.emplace(value, step_.result.formulas.size());
    if (fresh) step_.result.formulas.push_back(metric_formula(step_.specialized(), value, parts));
    return entry->second;
  }

  // Adds a built-in metric per (output, target) pair; with several targets its name includes the target: "mse.price".
  void add_built_in(StepPhase& phase, const std::string& name) {
    const MetricDef* def = find_metric(name);
    if (def == nullptr) throw std::logic_error("no built-in metric " + name);
    const std::vector<const OutputSpec*> answered = measured(step_.model, *def);
    if (answered.empty()) {
      throw Error(ErrorKind::input, "metric.target", fmt::format("the metric '{}' needs an output with a target", name),
                  R"(say which target an output answers: "outputs": {"prediction": "y"})");
    }
    const std::vector<std::string> names = reported_names(step_.model, {name, {}});
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
      NodeId operands[] = {step_.copy(output->value.id), step_.copy(step_.model.graph.find(output->target).id)};
      const bool knows_differences = def->power != 0 && log_of(output->target) == LogTransform::none;
      const double unit = knows_differences ? weigh(operands, output->target) : undo(operands, output->target);
      Recorded& recorded = step_.add_record(phase, names[i], call(step_.make, def->function, operands));
      recorded.unit = std::pow(unit, def->power);
      recorded.finish = def->finish;
      if (def->finish == MetricDef::Finish::r2)
        recorded.variance = variance(*step_.model.data.find(phase.split), output->target);
    }
  }

  // Whether the metric is not a mean over all elements, so that the host must compute it. As in scikit-learn, rmse and
  // r2 are means over columns, and accuracy for several labels compares whole rows, with threshold 0 for logits.
  bool needs_score(const MetricDef& def, const OutputSpec& output) const {
    if (def.function.empty()) return true;
    const TensorType target = step_.source.graph[step_.model.graph.find(output.target).id].type;
    const bool several = target.dtype == DType::f32 && target.shape.with_batch(1).elements() > 1;
    if (def.of_classes == nullptr) return several && def.finish != MetricDef::Finish::none;
    const ClassOutput how = class_outputs(step_.model)[static_cast<std::size_t>(&output - step_.model.outputs.data())];
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
    const std::span<const std::int64_t> dims = step_.source.graph[step_.model.graph.find(target).id].type.shape.dims();
    Shape shape(dims.empty() ? dims : dims.subspan(1));
    if (shape.rank() == 0) shape.push_back(static_cast<std::int64_t>(values.size()));
    return make::source(step_.make, "constant", {DType::f32, shape}, {{"values", values}});
  }

  // Transforms values back to the original units of the target. Returns their unit, 1.
  double undo(std::span<NodeId> values, const std::string& target) {
    for (const Standardization* fitted : fitted_of(target)) {
      for (NodeId& value : values) {
        const Var shift = constant_row(fitted->shift, target);
        value = (step_.var(value) * constant_row(fitted->scale, target) + shift).id;
        if (fitted->log != LogTransform::none) value = call(step_.make, "exp", {{value}});
        if (fitted->log == LogTransform::log1p) value = (step_.var(value) - 1.0).id;
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
    for (NodeId& value : values) value = (step_.var(value) * row).id;
    return largest;
  }

  StepBuilder& step_;
  const MetricAnalysis analysis_;
  std::map<std::string_view, std::vector<const Standardization*>> fitted_;  // keyed by input
  std::map<NodeId, std::size_t> formulas_;  // index in StepGraph::formulas, keyed by model value
};

}  // namespace

void add_evaluations(StepBuilder& step) {
  EvaluationPhases phases(step);
  for (const Split& split : step.model.data.splits) phases.add(split);
}

}  // namespace graphrun
