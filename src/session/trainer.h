// trainer.h: trains a loaded model: the host's work between chunks of steps.
// Contract: that of Session::train() and of the functions for programs with their own loop. Nothing allocates after the
// first step: report buffers are prepared before it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "session/evaluator.h"
#include "session/loaded_model.h"
#include "session/state_copy.h"
#include "session/stopping.h"

namespace graphrun {

// Mean loss over the samples of an epoch.
struct EpochMean {
  double sum = 0;      // over the epoch's steps so far: loss times batch size
  double samples = 0;  // samples so far
  double mean = 0;     // running mean; after the last step, the mean of the epoch

  void add(double loss, double batch, bool is_last) {
    sum += batch * loss;
    samples += batch;
    mean = sum / samples;
    if (is_last) sum = samples = 0;
  }
};

// Progress of train(), in addition to the program's states; stored in checkpoints (checkpoint/training_state.cpp).
struct TrainingProgress {
  EpochMean epoch;
  std::uint64_t unreported = 0;                                // 1: the last step has not been reported
  double best_loss = std::numeric_limits<double>::infinity();  // validation loss
  std::uint64_t best_step = 0;                                 // 0: no evaluation yet
  StoppingState stopping;
};

// State of training on the host.
struct TrainerState {
  TrainingProgress progress;
  std::vector<EpochMean> objectives;  // per objective if there are several, as TrainingProgress::epoch
  StateCopy best;                     // parameters of the best evaluation; empty without early_stopping's restore_best
  bool resumes = false;               // the next train() resumes from here and from the finished steps of the program
};

class Trainer {
 public:
  // Throws Error for an unknown value in SessionOptions::watch.
  Trainer(LoadedModel& loaded, Evaluator& evaluator, const std::vector<std::string>& watch);

  TrainResult train(const TrainOptions& options);
  std::uint64_t run_until(std::chrono::steady_clock::time_point deadline, std::uint64_t max_steps);
  const std::vector<std::string>& watched() const { return watched_names_; }
  TrainerState& state() { return state_; }
  void state_written() { written_ = true; }  // a state of the program was written from outside

  // Session::save_state() and load_state(): trainer_state.cpp.
  std::size_t state_bytes() const { return saved_bytes_; }
  void save_state(std::span<std::byte> to);
  void load_state(std::span<const std::byte> from);

 private:
  class Run;

  void prepare_state();  // for the three functions above
  void see_watched(Report& report);

  LoadedModel& loaded_;
  Evaluator& evaluator_;
  TrainerState state_;
  bool written_ = false;  // a state was written since train() last checked
  struct Watched {
    BufferId buffer = kNoBuffer;
    std::vector<std::byte> bytes;
  };
  std::vector<Watched> watched_;  // SessionOptions::watch
  std::vector<std::string> watched_names_;
  std::vector<Statistics> watched_statistics_;
  std::vector<BufferId> saved_;     // program states that save_state() stores
  std::size_t saved_bytes_ = 0;     // total size of a saved state
  std::uint64_t saved_layout_ = 0;  // hash of the layout of a saved state
};

// Session::training_warnings(): training_warnings.cpp.
std::vector<std::string> training_warnings(const LoadedModel& loaded);

}  // namespace graphrun
