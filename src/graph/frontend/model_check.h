// model_check.h: whether a Model that was put together in C++ can be used.
// Contract: check_usable() throws Error with every mistake: values of no or another builder, splits whose columns have
// not as many rows or are not what the inputs are, fitted numbers that are not one for each column, numbers of training
// out of range. A model that was read from a file has passed these where it was read.
// Leaves to others: whether operands fit (graph/builder.h), whether a loss can be differentiated (gradients.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/frontend/library/metrics.h"
#include "graphrun/error.h"
#include "graphrun/model.h"

namespace graphrun {

void check_usable(const Model& model);

// The names under which results have what a metric gives: its own, or "mse.price" for each of several targets.
std::vector<std::string> told_names(const Model& model, const MetricSpec& metric);

// The outputs that a built-in metric is applied to: of a metric of classes those whose targets are classes, otherwise
// the others. Where there are none, all outputs with targets, if a function computes it.
std::vector<const OutputSpec*> measured(const Model& model, const MetricDef& def);

// Whether more of what is monitored is better; nothing where the model has to say it and does not.
std::optional<bool> monitor_rises(const Model& model, const Monitor& monitor);
// Why a training cannot go by it: no metric of that name, or "train.monitor_mode": no word on what is better.
std::optional<Diagnostic> monitor_problem(const Model& model, const Monitor& monitor);

}  // namespace graphrun
