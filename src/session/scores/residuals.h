// residuals.h: regression metrics of one output, accumulated batch by batch.
// Contract: predicted and target rows are in original units. Not here: unit conversion and reading rows
// (split_scores.cpp).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graphrun/scores.h"

namespace graphrun {

class Residuals {
 public:
  Residuals(std::size_t rows, std::size_t columns);

  void add(std::span<const double> predicted, std::span<const double> targets);
  RegressionScores scores() const;

 private:
  struct Sums {
    double mean = 0, squares = 0;  // mean of targets; squared differences from it (Welford 1962)
    double smallest = 0, largest = 0;
    double residuals = 0, sizes = 0, squared = 0, shares = 0;
  };

  std::vector<Sums> columns_;
  std::vector<std::vector<double>> residuals_;  // one list per column; empty if too large
  std::size_t seen_ = 0;
};

}  // namespace graphrun
