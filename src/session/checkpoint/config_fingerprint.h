// config_fingerprint.h: what decides how a training goes on, as texts: whether a checkpoint belongs to it.
// Contract: the same facts mean the same next step, on one executor to the bit. What changes no step is no fact: the
// number of epochs, what is reported and evaluated when, the executor. Leaves to others: the states themselves.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/model.h"

namespace graphrun {

struct ConfigEntry {
  std::string key, text;  // "seed", "1"; of the graph a line for each node
};

std::vector<ConfigEntry> training_config(const Model& model);

// Of all of them, 16 hex digits.
std::string fingerprint_of(const std::vector<ConfigEntry>& config);

// What differs, a line for each: "seed: 1 in the checkpoint, 2 here". `there` gives the text under a key, "" for none.
std::vector<std::string> differences(const std::function<std::string(std::string_view key)>& there,
                                     const std::vector<ConfigEntry>& here);

}  // namespace graphrun
