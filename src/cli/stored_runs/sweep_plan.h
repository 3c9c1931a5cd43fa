// sweep_plan.h: which trainings `sweep` makes of what it varies.
// Contract: --over PATH=VALUES lists values (0.1,0.01; commas inside brackets do not part them), or counts: 4:64:2x
// multiplies, 1:9:+2 adds, 1:5 adds 1, both ends included. Every value of each with every one of the others, the last
// varies first. Throws Error (kind input). Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace graphrun::cli {

struct Axis {
  std::string path;  // "train.optimizer.adam.lr"
  std::vector<std::string> values;
};

using Setting = std::vector<std::string>;  // a value for each axis

Axis axis_of(const std::string& over);
std::vector<Setting> settings_of(const std::vector<Axis>& axes);

}  // namespace graphrun::cli
