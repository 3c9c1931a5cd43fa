// config_fingerprint.h: settings that determine how a training continues, to match a checkpoint with a model.
// Contract: equal entries give an equal next step, bitwise on one executor. Settings that affect no step are excluded:
// number of epochs, reports, evaluation intervals, the executor. Not here: the states.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/model.h"

namespace graphrun {

struct ConfigEntry {
  std::string key, text;  // "seed", "1"; for the graph, one line per node
};

std::vector<ConfigEntry> training_config(const Model& model);

// Hash of all entries, 16 hex digits.
std::string fingerprint_of(const std::vector<ConfigEntry>& config);

// Lists the differences: "seed: 1 in the checkpoint, 2 here". `there` returns the text of a key, "" if missing.
std::vector<std::string> differences(const std::function<std::string(std::string_view key)>& there,
                                     const std::vector<ConfigEntry>& here);

}  // namespace graphrun
