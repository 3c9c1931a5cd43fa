// hyperparameter_changes.h: runtime hyperparameters: optimizer settings that can change during training.
// Contract: without changes, the results are bitwise identical to those of the model as read. HyperparameterChange
// (graphrun/run_folder.h) records each change, so that `replay` reproduces the weights. Throws Error (kind input).
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

// Turns these into runtime state (OptimizerSpec::runtime): the learning rate unless it has a schedule, momentum, and l2
// and weight_decay if they are not 0.
void make_hyperparameters_runtime(Model& model);

// Names and values of the session's hyperparameters ("lr", or "NAME.lr" with several objectives).
std::vector<std::pair<std::string, double>> runtime_hyperparameters(Session& session);

// Call between two steps; `step`: number of steps completed.
HyperparameterChange change_hyperparameter(Session& session, std::uint64_t step, std::string_view name, double value);

std::string changes_json(std::span<const HyperparameterChange> changes);  // format of changes.json

}  // namespace graphrun::cli
