// lanes.h: a step on the row of one lane, or of two that each have half of some values (kernels/cuda/tile/pair.h).
// Contract: that of row_text.h, which writes all code that is independent of lanes, on whole values.
// Not here: the meaning of a name, the cost of a step (thread_costs.cpp).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "executors/cuda_planner/print/row_text.h"

namespace graphrun::cuda {

// A reduced value: its number of sums per lane, and the function of (at, second, e) that finds element e among them.
struct LaneSums {
  std::int64_t numbers = 0;
  std::string place = {};
};

struct LaneStep {
  int lanes;
  TextCall call;
  std::vector<bool> halves;  // the inputs that two lanes split

  bool makes_half() const;
  bool fits() const;  // if false, two lanes cannot run the step
  LaneSums sums() const;
  bool is_product() const;    // product of a row and weights
  bool sums_halves() const;   // product of a half row: the lanes add their partial sums
  bool is_mapped() const;     // each lane computes its half of the features
  bool sums_columns() const;  // product over rows: splits its columns, otherwise its rows
  bool reads_half(std::size_t input) const;

  // Adds statements to `before` that define converted operands. Variables in `there` are already defined.
  std::string text(std::int64_t at, std::set<std::string>& there, std::string& before) const;
};

}  // namespace graphrun::cuda
