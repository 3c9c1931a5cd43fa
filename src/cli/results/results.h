// results.h: what a trained model reached, as `train` and `eval` print it.
// Contract: as JSON one object with exactly the keys model, executor, math, seed, settings, train, validation, test,
// scores, epochs, steps, seconds, steps_per_second, interrupted, arena_bytes, weights_hash, in this order; without a
// training the five about it are left out; early_stopping and lr_factor follow interrupted where the model asks for
// them, and a profile, where one was asked for, comes last. A split holds loss, then
// each metric by name; one that the model has not is null; of another file's rows there is one split, data, in place of
// the three. So is what an interrupt left no time for. `scores` has an object for each split that there is, and there
// one for each output with a target.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/session.h"

namespace graphrun::cli {

// The last is there for eval --data only, and is not told of otherwise.
inline constexpr std::array<std::string_view, 4> kSplits = {"train", "validation", "test", "data"};

struct Results {
  std::string model;
  std::string executor;
  std::string_view math;  // name_of(MathMode)
  std::uint64_t seed = 0;
  std::string settings;  // training_settings(), for JSON
  std::array<std::optional<Metrics>, kSplits.size()> splits;
  std::array<std::vector<OutputScores>, kSplits.size()> scores;
  std::array<std::uint64_t, kSplits.size()> rows{};
  std::optional<TrainResult> training;
  std::string monitor;             // of early_stopping; empty: the model has none
  bool lowers_lr = false;          // the model has an lr_plateau
  std::int64_t largest_batch = 0;  // what --batch=max became; 0: the model names its batch
  std::uint64_t arena_bytes = 0;
  std::optional<BudgetSummary> budget;    // where max_memory changed the plan
  std::vector<std::string> budget_lines;  // that tell of it
  std::vector<std::string> regions;       // lines about them, for the text; none when none were asked for
  std::optional<std::string> weights_hash;
  std::vector<std::string> left_out;  // that there was no time for
  std::optional<Profile> profile;
};

// Every split that there is with the present weights, and their hash: as much of it as is done after so many seconds.
Results evaluated(Session& session, double seconds = std::numeric_limits<double>::infinity());

std::string epochs_text(const TrainResult& training);  // "12 (stopped early)"
std::string as_json(const Results& results);
// Of a training that ended with a loss or a parameter that is not finite.
std::string failure_json(const Session& session, const NotFinite& failure, const std::string& settings);
std::string as_text(const Results& results);
// Of the scores: by class or column of the split that says most, the last one of train, validation, test.
std::string details_text(const Results& results);
void reject_non_finite(const Results& results);  // throws Error (kind run)

}  // namespace graphrun::cli
