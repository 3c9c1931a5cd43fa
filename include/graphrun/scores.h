// scores.h: what the outputs of a split are worth beside its targets, over the whole split and by class or column.
// Contract: everything in double, independent of batches; a figure that these rows do not have (the area under a curve
// where one class is missing) is NaN. metrics.md defines each one. Plain data.
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

// Of one class against all others.
struct PerClassScores {
  std::string name;             // its word or number
  std::uint64_t rows = 0;       // that are of it,
  std::uint64_t predicted = 0;  // and that are said to be
  double precision = 0, recall = 0, f1 = 0;
  double auc = kNoScore;                // area under the ROC curve
  double average_precision = kNoScore;  // area under the curve of precision over recall
};

struct ClassAverages {
  double precision = 0, recall = 0, f1 = 0;
};

struct ClassScores {
  // Two classes of which the second is looked for, several of which a row is one, or labels of which it may be several.
  enum class Kind : std::uint8_t { two, several, labels };
  Kind kind = Kind::several;
  std::vector<PerClassScores> classes;
  // (classes, classes): rows are true, columns predicted. Empty for labels, and for more than 1000 classes.
  std::vector<std::uint64_t> confusion;
  double accuracy = 0;  // of labels: rows of which all are right
  double balanced_accuracy = kNoScore, mcc = kNoScore;
  ClassAverages macro, micro;  // over the classes, over their rows
  double log_loss = kNoScore;
  double auc = kNoScore, average_precision = kNoScore;  // of the class looked for, or the mean over classes
  std::vector<std::pair<int, double>> top;              // how often the class is among the best 2, 3, 5 of more
};

// Of a column of a target, in original units. A residual is what was predicted, less what is true.
struct ColumnScores {
  double r2 = kNoScore, mae = kNoScore, rmse = kNoScore;
  double mape = kNoScore;  // a share, not percent; none where a target is zero
  double mean_residual = kNoScore;
  std::vector<std::pair<double, double>> quantiles;  // of the residuals: share and value
};

struct RegressionScores {
  std::vector<ColumnScores> columns;
  ColumnScores mean;  // over the columns, without quantiles
};

struct OutputScores {
  std::string output, target;
  std::uint64_t rows = 0;
  std::optional<ClassScores> classes;  // one of the two
  std::optional<RegressionScores> regression;
};

// Whether a built-in metric is told under this name ("auc", "auc.TARGET"): one that these rows may not have.
GRAPHRUN_API bool is_score(std::string_view metric);

}  // namespace graphrun
