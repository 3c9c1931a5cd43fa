// model_check.h: validation of a Model that was built in C++.
// Contract: check_usable() throws Error with all problems: values that are empty or from another builder, split columns
// that differ in their rows or do not match the inputs, standardizations without one number per column, training
// settings out of range. The reader of model files checks the same rules for models from files.
// Checked elsewhere: operand types (graph/builder.h), differentiability of the loss (gradients.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/frontend/library/metrics.h"
#include "graphrun/error.h"
#include "graphrun/model.h"

namespace graphrun {

void check_usable(const Model& model);

// Warnings about the graph: activations without a second derivative in a model that needs it.
std::vector<std::string> graph_warnings(const Model& model);

// Names of a metric in results: its own name, or one per target ("mse.price") if there are several.
std::vector<std::string> reported_names(const Model& model, const MetricSpec& metric);

// The outputs that a built-in metric evaluates: those with class targets for a class metric, otherwise those with
// numeric targets. If there are none and the metric has a function, all outputs with targets.
std::vector<const OutputSpec*> measured(const Model& model, const MetricDef& def);

// Whether a higher monitored value is better; nullopt if the model must specify it and does not.
std::optional<bool> monitor_rises(const Model& model, const Monitor& monitor);
// Describes why the monitor is invalid: unknown metric, or "train.monitor_mode": mode required but not given.
std::optional<Diagnostic> monitor_problem(const Model& model, const Monitor& monitor);

}  // namespace graphrun
