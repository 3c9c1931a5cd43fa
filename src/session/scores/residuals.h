// residuals.h: the scores of an output that predicts numbers, from its rows, batch after batch.
// Contract: rows of the target beside those of the output, both in original units. Leaves to others: units, and where
// the rows come from (split_scores.cpp).
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
    double mean = 0, squares = 0;  // of the targets: of squares from their mean (Welford 1962)
    double smallest = 0, largest = 0;
    double residuals = 0, sizes = 0, squared = 0, shares = 0;
  };

  std::vector<Sums> columns_;
  std::vector<std::vector<double>> residuals_;  // by column; none where there are too many
  std::size_t seen_ = 0;
};

}  // namespace graphrun
