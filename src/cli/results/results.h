// results.h: results of a trained model, as printed by `train` and `eval`.
// Contract: the JSON is one object with exactly these keys in this order: model, executor, math, seed, settings, train,
// validation, test, scores, epochs, steps, seconds, steps_per_second, interrupted, arena_bytes, weights_hash. Without
// training the five training keys are absent. early_stopping, lr_factor and optimizer follow interrupted if the model
// uses them; a requested profile and intervals come last. For the rows of another file, one split `data` replaces the
// three. A split has the loss, then each metric by name. A split is null if the model lacks it or an interrupt left no
// time for it. `scores` has an object per split, with an object per output that has a target.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/session.h"

namespace graphrun::cli {

// "data" exists only for eval --data and is omitted otherwise.
inline constexpr std::array<std::string_view, 4> kSplits = {"train", "validation", "test", "data"};

struct Results {
  std::string model;
  std::string executor;
  std::string_view math;  // name_of(MathMode)
  std::uint64_t seed = 0;
  std::string settings;  // JSON text from training_settings()
  std::array<std::optional<Metrics>, kSplits.size()> splits;
  std::array<std::vector<OutputScores>, kSplits.size()> scores;
  std::array<std::uint64_t, kSplits.size()> rows{};
  std::array<std::pair<std::string, std::string>, kSplits.size()> times;  // Split::first and last
  std::optional<TrainResult> training;
  std::string monitor;                                    // monitored metric of early_stopping; empty: not used
  std::string thresholds;                                 // text, as in "out 0.35"; empty: none
  bool lowers_lr = false;                                 // the model uses lr_plateau
  std::vector<std::pair<std::string, double>> optimizer;  // Session::optimizer_numbers()
  std::int64_t largest_batch = 0;                         // batch size chosen by --batch=max; 0: not used
  std::uint64_t arena_bytes = 0;
  std::optional<BudgetSummary> budget;    // set if max_memory changed the plan
  std::vector<std::string> budget_lines;  // text about `budget`
  std::vector<std::string> regions;       // text about regions; empty unless requested
  std::optional<std::string> weights_hash;
  std::vector<std::string> left_out;  // skipped for lack of time
  std::optional<Profile> profile;
  std::string importance_metric;                             // empty: not requested
  std::string_view importance_split;                         // last available one of kSplits, as for details_text()
  std::vector<Importance> importance;                        // input columns, largest first
  std::vector<std::pair<std::string, double>> coefficients;  // empty: not requested
  std::optional<FitIntervals> intervals;                     // empty: not requested
  std::string intervals_note;                                // reason for missing or unreliable intervals
};

// Evaluates all splits with the current weights, and hashes them; skips the rest after `seconds`. `with_curves`:
// includes the metrics at every threshold.
Results evaluated(Session& session, double seconds = std::numeric_limits<double>::infinity(), bool with_curves = false);

// Permutation importance on the last available split.
void add_importance(Results& results, Session& session, const std::string& metric);

// Confidence intervals of the parameters, or the reason for their absence.
void add_intervals(Results& results, Session& session);

std::string epochs_text(const TrainResult& training);  // "12 (stopped early)"
std::string as_json(const Results& results);
// For a training that ended with a non-finite loss or parameter.
std::string failure_json(const Session& session, const NotFinite& failure, const std::string& settings);
std::string as_text(const Results& results);
// Metrics per class or column, for the last available split of train, validation, test.
std::string details_text(const Results& results);
// Except the loss and metrics of a split with rows of an unseen class, which are undefined.
void reject_non_finite(const Results& results);  // throws Error (kind run)

}  // namespace graphrun::cli
