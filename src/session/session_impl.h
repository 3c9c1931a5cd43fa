// session_impl.h: state of a Session: the model, its plan, the loaded program, and the progress of each phase.
// Contract: that of session.h. Members are defined in session.cpp, train.cpp, predict.cpp, embedding.cpp and
// scores/split_scores.cpp.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/class_range.h"
#include "base/not_moved.h"
#include "data/sources/array_rows.h"
#include "graphrun/elements.h"
#include "graphrun/session.h"
#include "session/compiling/compiled_model.h"
#include "session/metric_formula.h"
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

// Samples of a prediction input.
struct GivenRows {
  DType dtype;
  std::span<const std::byte> bytes;
  std::int64_t samples;
  const Standardization* fitted;  // null: not standardized
};
inline GivenRows given_rows(const HostTensor& rows, const Standardization* fitted) {
  return {rows.dtype(), rows.bytes(), rows.shape()[0], fitted};
}

struct __attribute__((visibility("hidden"))) Session::Impl {  // member of an exported class
  Impl(Model model, const SessionOptions& options);
  std::unique_ptr<Runnable> load(PlanOptions options);

  const Program& program() const { return compiled.program; }
  BufferId buffer(ir::NodeId node) const { return compiled.buffer(node); }
  const Standardization* fitted_of(std::string_view input) const {  // null: not standardized
    const auto found = fitted_by_input.find(input);
    return found == fitted_by_input.end() ? nullptr : found->second;
  }
  void write(BufferId id, const HostTensor& tensor) { runnable->write(id, tensor.bytes()); }
  std::optional<std::size_t> phase_index(std::string_view name) const;
  std::optional<std::size_t> evaluation_of(std::string_view split) const;
  std::size_t training() const;  // phase index; throws Error if there is nothing to train

  // Runs n <= ring size steps of a phase; afterwards observe() sees their records.
  void run(std::size_t phase, std::uint64_t n);
  // Number of steps (up to `most`) for one run(), so that the host polls about every 25 ms; estimated from earlier
  // runs. The number of run() calls does not affect results.
  std::uint64_t steps_per_poll(std::size_t phase, std::uint64_t most) const;

  // Calls see(step, value) for the records of the last n steps in a ring, oldest first.
  template <class See>
  void observe(std::size_t index, ir::NodeId ring_node, std::uint64_t n, See see) {
    const std::uint64_t ring = static_cast<std::uint64_t>(compiled.step.phases[index].ring);
    const std::span<float> values(ring_values.data(), ring);
    runnable->read(buffer(ring_node), std::as_writable_bytes(values));
    std::uint64_t at = (done[index] - n) % ring;
    for (std::uint64_t step = done[index] - n; step < done[index]; ++step, at = at + 1 == ring ? 0 : at + 1)
      see(step, unsigned_nan(values[at]));
  }

  // session.cpp: loss of the last step of the phase; NaN before the first.
  double last_record(std::size_t phase);
  double last_loss();  // loss of the last training step that ran; NaN before the first

  // train.cpp
  Metrics named_metrics(std::size_t evaluation) const;  // names with zero values
  // `metrics`: from named_metrics(); unchanged if false: train() was cancelled, or time is up. Allocates nothing.
  bool evaluate(std::size_t evaluation, Metrics& metrics, double until = std::numeric_limits<double>::infinity());
  TrainResult train(const TrainOptions& options);
  bool is_cancelled() const {
    return communicator != nullptr ? ranks_cancelled : cancelled.load(std::memory_order_relaxed);
  }
  std::uint64_t steps_of_epoch() const;  // throws Error if there is nothing to train
  void see_watched(Report& report);
  void write_lr_factor(double factor);
  double read_scalar(ir::NodeId state) const;
  void set_done(std::size_t phase, std::uint64_t steps);       // finished steps, here and in the program
  StopCause stop_cause(bool reset);                            // reads it from the program; `reset`: clears it first
  std::optional<std::uint64_t> hash_parameters(double until);  // session.cpp; nothing if time is up
  // Throws NotFinite for a non-finite loss at `step`, or for a parameter if `loss` is nothing. `good`: null if the step
  // is not to be traced.
  [[noreturn]] void reject_not_finite(GoodStates* good, std::uint64_t step, std::optional<double> loss);
  // First training step up to `last` that left a parameter non-finite, or `last`. On return, the program and `good`
  // hold the states before it.
  std::uint64_t first_nonfinite_step(GoodStates& good, std::uint64_t last);

  // predict.cpp
  // Applies "transform" to rows if it changes columns. f64 rows of the model's own width come from an InputReader and
  // are already transformed.
  std::vector<std::pair<std::string, HostTensor>> changed(
      const std::vector<std::pair<std::string, HostTensor>>& tensors);
  std::int64_t columns_of(std::string_view input) const {  // 0: "transform" changes no columns
    return model.data.arrays ? model.data.arrays->width(input) : 0;
  }
  HostTensor changed(std::string_view input, const HostTensor& rows);
  // Returns the first `count` outputs.
  std::vector<std::pair<std::string, HostTensor>> predict(
      const std::vector<std::pair<std::string, HostTensor>>& tensors, std::size_t count);
  std::vector<GivenRows> in_order(const StepPhase& phase,
                                  const std::vector<std::pair<std::string, HostTensor>>& given) const;
  // Runs the prediction phase on all rows. Calls see(rows in the batch, first `count` outputs in the model's units)
  // until it returns false; then returns false.
  bool each_batch(std::size_t index, std::span<const GivenRows> given, std::size_t count,
                  const std::function<bool(std::int64_t, std::span<const HostTensor>)>& see);
  void write_batch(const StepPhase& phase, std::span<const GivenRows> given, std::int64_t first, std::int64_t count);
  void predict(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs,
               DType floats);
  // Runs the phase on all rows. Writes each of the first outputs, in original units, to a span of exactly its size.
  void predict_into(const StepPhase& phase, std::span<const GivenRows> given,
                    std::span<const std::span<std::byte>> outputs);
  std::uint64_t sample_bytes(const StepPhase& phase, ir::NodeId node) const;  // for an input or output
  const StepPhase& prediction() const;                                        // throws Error if there are no outputs
  const StepPhase& predicting() const;                                        // same, or no inputs
  const TensorType& type_of_output(const StepPhase& phase, std::size_t i) const;  // throws Error if it has no rows
  void check_predicted_classes(std::string_view input, const GivenRows& given, std::size_t index) const;
  void prepare_predictions();  // preallocates for the two functions above

  // embedding.cpp
  void prepare_state();                               // preallocates for the functions below
  void reject_in_train(std::string_view call) const;  // throws Error if called back from train()
  bool losses_finite(std::uint64_t steps);            // checks the last training steps
  void save_state(std::span<std::byte> to);
  void load_state(std::span<const std::byte> from);

  // scores/split_scores.cpp
  // `as`: the single output to evaluate, as classes or as numbers; null: all outputs, each by its own kind.
  struct ScoredAs {
    std::string_view target;
    bool is_class;
  };
  std::optional<std::vector<OutputScores>> scores(std::string_view name, double until, const ScoredAs* as = nullptr,
                                                  bool with_curves = false);
  bool choose_thresholds(const ThresholdRule& rule, std::string_view split, double until);
  // Fills in the phase's metrics that come from OutputScores.
  bool evaluate_scores(const StepPhase& phase, Metrics& metrics, double until);

  Model model;
  std::vector<ClassRange> predicted_classes;        // valid classes of predict() inputs
  std::optional<data::FittedStatistics> array_fit;  // statistics of the model's data; fitted on first use
  std::vector<HostTensor> changed_rows;             // for predict() into spans
  std::vector<HostTensor> prediction_batch;         // per prediction input: rows to write to the arena
  std::vector<GivenRows> predicted;                 // per prediction input: rows given to predict() into spans
  std::vector<ExecutorTiming> timings;
  std::shared_ptr<Executor> executor;
  std::shared_ptr<Communicator> communicator;  // null: no other ranks
  PlanOptions planned;
  SetupTimes times;
  CompiledModel compiled;
  std::unique_ptr<Runnable> runnable;
  std::vector<std::uint64_t> done;  // per phase: finished steps, as in its counter
  TrainingProgress progress;
  std::vector<EpochMean> objectives;  // per objective if there are several, as TrainingProgress::epoch
  StateCopy best;                     // parameters of the best evaluation; empty without early_stopping's restore_best
  bool written = false;               // a state was written since train() last checked
  bool resumes = false;               // the next train() resumes from `progress` and `done`
  std::vector<float> ring_values;
  std::vector<double> totals;  // accumulators of an evaluation, per metric or metric part
  std::vector<PlannedFormula> formulas;
  std::map<std::string_view, const Standardization*> fitted_by_input;  // keyed by input
  struct Pace {
    std::uint64_t steps = 0;  // steps of the last run(); 0: not run yet
    double seconds = 0;       // duration of that run()
    double fastest = 0;       // seconds per step of the fastest run(); 0: not run yet
  };
  std::vector<Pace> paces;  // one per phase
  struct Watched {
    BufferId buffer = kNoBuffer;
    std::vector<std::byte> bytes;
  };
  std::vector<Watched> watched;  // SessionOptions::watch
  std::vector<std::string> watched_names;
  std::vector<Statistics> watched_statistics;
  std::vector<BufferId> saved;        // program states that save_state() stores
  std::size_t saved_bytes = 0;        // total size of a saved state
  std::uint64_t saved_layout = 0;     // hash of the layout of a saved state
  std::vector<std::byte> piece;       // scratch for reading a state piecewise
  std::atomic<bool> in_train{false};  // train() is running, so cancel() applies to it
  std::atomic<bool> cancelled{false};
  bool ranks_cancelled = false;  // the same on all ranks
  // For step(): training steps before the current run(), and whether one is in progress.
  std::atomic<std::uint64_t> steps_before{0};
  std::atomic<bool> stepping{false};
};

// Returns the implementation; throws Error if the Session was moved from.
template <class Impl>
Impl& not_moved(const std::unique_ptr<Impl>& impl) {
  return not_moved(impl, "session");
}

}  // namespace graphrun
