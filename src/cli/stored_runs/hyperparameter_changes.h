// hyperparameter_changes.h: numbers of the optimizer that are changed while a training runs.
// Contract: a training whose numbers are never changed has the bits of the model as it was read. What is changed is
// told by HyperparameterChange (graphrun/run_folder.h), with which `replay` makes the same weights. Throws Error (kind
// input).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/run_folder.h"
#include "graphrun/session.h"

namespace graphrun::cli {

// Makes states of them (OptimizerSpec::runtime): the learning rate unless it has a schedule, momentum, and l2 and
// weight_decay where they are not 0.
void make_hyperparameters_runtime(Model& model);

// Those of the session by name ("lr", or of one of several objectives "NAME.lr"), and what they are worth.
std::vector<std::pair<std::string, double>> runtime_hyperparameters(Session& session);

// Between two steps, of which `step` have been run.
HyperparameterChange change_hyperparameter(Session& session, std::uint64_t step, std::string_view name, double value);

std::string changes_json(std::span<const HyperparameterChange> changes);  // as changes.json has them

}  // namespace graphrun::cli
