// sweep_plan.h: combinations of settings that `sweep` trains.
// Contract: --over PATH=VALUES takes a list (0.1,0.01; commas inside brackets do not separate) or an inclusive range:
// 4:64:2x multiplies, 1:9:+2 adds, 1:5 adds 1. The result is the Cartesian product; the last axis varies fastest.
// Throws Error (kind input). Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace graphrun::cli {

struct Axis {
  std::string path;  // "train.optimizer.adam.lr"
  std::vector<std::string> values;
};

using GridPoint = std::vector<std::string>;  // one value per axis

Axis axis_of(const std::string& over);
std::vector<GridPoint> settings_of(const std::vector<Axis>& axes);

}  // namespace graphrun::cli
