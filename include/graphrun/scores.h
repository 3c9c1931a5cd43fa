// scores.h: metrics of the outputs over a whole split, in total and by class or column.
// Contract: computed in double, independent of batches. A metric that these rows do not define (AUC with one class) is
// NaN. metrics.md defines each metric. Plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/export.h"

namespace graphrun {

inline constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

// Rows at a decision threshold: those with at least this predicted probability.
struct CurvePoint {
  double threshold = 0;
  std::uint64_t true_positives = 0, false_positives = 0;
};

// One-vs-rest metrics of a class.
struct PerClassScores {
  std::string name;             // class label or number
  std::uint64_t rows = 0;       // rows with this actual class
  std::uint64_t predicted = 0;  // rows with this predicted class
  std::uint64_t true_positives = 0;
  double precision = 0, recall = 0, f1 = 0;
  double auc = kNoScore;                // area under the ROC curve
  double average_precision = kNoScore;  // area under the precision-recall curve
  double threshold = kNoScore;          // decision threshold, if it is not 1/2
  // If requested: each distinct probability in descending order; of two classes, for the second only.
  std::vector<CurvePoint> curve = {};
};

struct ClassAverages {
  double precision = 0, recall = 0, f1 = 0;
};

struct ClassScores {
  // two: binary, the second class is positive. several: one class per row. labels: multilabel.
  enum class Kind : std::uint8_t { two, several, labels };
  Kind kind = Kind::several;
  std::vector<PerClassScores> classes;
  // (classes, classes): rows are actual, columns predicted. Empty for labels and for more than 1000 classes.
  std::vector<std::uint64_t> confusion;
  std::uint64_t unseen = 0;  // rows of no class of the model (LoadOptions::accepts_unseen): misses
  double accuracy = 0;       // labels: fraction of rows with all labels correct
  double balanced_accuracy = kNoScore, mcc = kNoScore;
  ClassAverages macro, micro;  // averages over classes and over rows
  double log_loss = kNoScore;
  double auc = kNoScore, average_precision = kNoScore;  // positive class, or the mean over classes
  std::vector<std::pair<int, double>> top;              // top-k accuracy for k = 2, 3, 5, if there are more classes
};

// Metrics of a target column, in original units. A residual is predicted minus actual.
struct ColumnScores {
  double r2 = kNoScore, mae = kNoScore, rmse = kNoScore;
  double mape = kNoScore;  // fraction, not percent; NaN if a target is zero
  double mean_residual = kNoScore;
  std::vector<std::pair<double, double>> quantiles;  // quantiles of the residuals: probability and value
};

struct RegressionScores {
  std::vector<ColumnScores> columns;
  ColumnScores mean;  // over the columns, without quantiles
};

struct OutputScores {
  std::string output, target;
  std::uint64_t rows = 0;
  std::optional<ClassScores> classes;  // exactly one of classes and regression is set
  std::optional<RegressionScores> regression;
};

// Permutation importance of a source column of an input (Breiman 2001), or of element 3, "x3", of an input without
// columns.
struct Importance {
  std::string column;
  double mean = 0, std_dev = 0;  // how much worse the metric becomes, over the shuffles
};

// A fitted number of a parameter, with its standard error and confidence interval.
struct ParameterInterval {
  std::string parameter;  // "decay"; "W[0,3]" for an element
  double value = 0, std_error = 0, low = 0, high = 0;
};

// Confidence intervals of all trained parameters after a least-squares fit.
struct FitIntervals {
  std::vector<ParameterInterval> parameters;
  std::uint64_t residuals = 0;  // those whose weight is not 0
  double std_dev = 0;           // residual standard error, with weights scaled to a mean of 1
  double offset = 0;            // distance from the minimum, in standard errors; 0 after a complete fit
};

// Returns whether a built-in metric has this name ("auc", "auc.TARGET") and may be undefined for some rows.
GRAPHRUN_API bool is_score(std::string_view metric);
// Returns whether the loss or a built-in metric of this name is better if it is larger; none for any other name.
GRAPHRUN_API std::optional<bool> more_is_better(std::string_view metric);

}  // namespace graphrun
