// evaluator.h: loss and metrics of whole splits with the current weights.
// Contract: evaluate() allocates nothing unless a metric needs predictions; the memory of scores() grows with the rows.
// Both return nothing if time is up or train() was cancelled. Not here: each metric (scores/).
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "session/loaded_model.h"
#include "session/metric_formula.h"
#include "session/predictor.h"

namespace graphrun {

constexpr double kForever = std::numeric_limits<double>::infinity();

class Evaluator {
 public:
  Evaluator(LoadedModel& loaded, Predictor& predictor);

  std::optional<std::size_t> phase_of(std::string_view split) const;  // nothing if it cannot be evaluated
  std::vector<std::string> metric_names() const;
  Metrics named_metrics(std::size_t evaluation) const;  // names with zero values
  // `metrics`: from named_metrics(). `until`: by Profiler::now(). Returns false, without changes, if time is up.
  bool evaluate(std::size_t evaluation, Metrics& metrics, double until = kForever);

  std::optional<std::vector<OutputScores>> scores(std::string_view split, double until, bool with_curves = false) {
    return scores_as(nullptr, split, until, with_curves);
  }
  bool choose_thresholds(const ThresholdRule& rule, std::string_view split, double until);

 private:
  // The single output to evaluate, as classes or as numbers.
  struct ScoredAs {
    std::string_view target;
    bool is_class;
  };
  // `as`: null for all outputs, each by its own kind.
  std::optional<std::vector<OutputScores>> scores_as(const ScoredAs* as, std::string_view split, double until,
                                                     bool with_curves);
  // Fills in the phase's metrics that come from OutputScores.
  bool evaluate_scores(const StepPhase& phase, Metrics& metrics, double until);

  LoadedModel& loaded_;
  Predictor& predictor_;
  std::vector<double> totals_;  // accumulators of an evaluation, per metric or metric part
  std::vector<PlannedFormula> formulas_;
};

}  // namespace graphrun
