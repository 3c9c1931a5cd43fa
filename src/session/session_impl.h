// session_impl.h: what a Session holds: the model, its plan, the loaded program, and how far each phase is.
// Contract: session.h's. Members are defined in session.cpp, train.cpp, predict.cpp, embedding.cpp and
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
#include "data/array_rows.h"
#include "graphrun/elements.h"
#include "graphrun/session.h"
#include "session/compiling/compiled_model.h"
#include "session/metric_formula.h"
#include "session/state_copy.h"
#include "session/stopping.h"

namespace graphrun {

// The mean of a loss over the samples of an epoch.
struct EpochMean {
  double sum = 0;      // of the epoch's steps so far, each times the samples of its batch
  double samples = 0;  // of those
  double mean = 0;     // after the last step of an epoch that of the whole epoch

  void add(double loss, double batch, bool is_last) {
    sum += batch * loss;
    samples += batch;
    mean = sum / samples;
    if (is_last) sum = samples = 0;
  }
};

// How far train() has come, beside the states of the program; kept in checkpoints (checkpoint/training_state.cpp).
struct TrainingProgress {
  EpochMean epoch;
  std::uint64_t unreported = 0;                                // 1: nobody was told of the last step
  double best_loss = std::numeric_limits<double>::infinity();  // of validation
  std::uint64_t best_step = 0;                                 // 0: there was no evaluation yet
  StoppingState stopping;
};

// Samples of an input to predict from.
struct GivenRows {
  DType dtype;
  std::span<const std::byte> bytes;
  std::int64_t samples;
  const Standardization* fitted;  // null: the input's numbers are not changed
};
inline GivenRows given_rows(const HostTensor& rows, const Standardization* fitted) {
  return {rows.dtype(), rows.bytes(), rows.shape()[0], fitted};
}

struct __attribute__((visibility("hidden"))) Session::Impl {  // within a class that is exported
  Impl(Model model, const SessionOptions& options);
  std::unique_ptr<Runnable> load(PlanOptions options);

  const Program& program() const { return compiled.program; }
  BufferId buffer(ir::NodeId node) const { return compiled.buffer(node); }
  const Standardization* fitted_of(std::string_view input) const {  // null: its numbers are not changed
    const auto found = fitted_by_input.find(input);
    return found == fitted_by_input.end() ? nullptr : found->second;
  }
  void write(BufferId id, const HostTensor& tensor) { runnable->write(id, tensor.bytes()); }
  std::optional<std::size_t> phase_index(std::string_view name) const;
  std::optional<std::size_t> evaluation_of(std::string_view split) const;
  std::size_t training() const;  // the phase's index; throws Error when there is nothing to train

  // Runs n <= ring size steps of a phase; afterwards observe() sees their records.
  void run(std::size_t phase, std::uint64_t n);
  // At most `most` steps of the phase, as many as a run() should do before the host looks again whether to go on: by
  // the time that its steps took so far, 25 ms. Where a run() ends changes no bits.
  std::uint64_t steps_per_poll(std::size_t phase, std::uint64_t most) const;

  // Calls see(step, value) for the records of the last n steps in a ring, oldest first.
  template <class See>
  void observe(std::size_t index, ir::NodeId ring_node, std::uint64_t n, See see) {
    const std::uint64_t ring = static_cast<std::uint64_t>(compiled.step.phases[index].ring);
    const std::span<float> values(ring_values.data(), ring);
    runnable->read(buffer(ring_node), std::as_writable_bytes(values));
    for (std::uint64_t step = done[index] - n; step < done[index]; ++step) see(step, unsigned_nan(values[step % ring]));
  }

  // session.cpp: the loss of the last step of the phase; NaN before the first.
  double last_record(std::size_t phase);
  double last_loss();  // of the training step that was run last; NaN: none was

  // train.cpp
  Metrics named_metrics(std::size_t evaluation) const;  // values zero
  // Of named_metrics(); allocates nothing. False, and nothing is written: train() was cancelled, or it is too late.
  bool evaluate(std::size_t evaluation, Metrics& metrics, double until = std::numeric_limits<double>::infinity());
  TrainResult train(const TrainOptions& options);
  std::uint64_t steps_of_epoch() const;  // throws Error when there is nothing to train
  void see_watched(Report& report);
  void write_lr_factor(double factor);
  std::optional<std::uint64_t> hash_parameters(double until);  // session.cpp; nothing: it is too late
  // Throws NotFinite: of the last n steps the loss was not finite at `step`, or no loss but a parameter; `good`: null
  // where the step is not to be traced.
  [[noreturn]] void reject_not_finite(GoodStates* good, std::uint64_t step, std::optional<double> loss);
  // The training step, at `last` or before, after which a parameter is not finite, or `last`; leaves the states before
  // it, and `good` has them.
  std::uint64_t first_nonfinite_step(GoodStates& good, std::uint64_t last);

  // predict.cpp
  // Rows whose columns "transform" changes, changed; f64 rows of the model's own width are those of an InputReader,
  // which are.
  std::vector<std::pair<std::string, HostTensor>> changed(
      const std::vector<std::pair<std::string, HostTensor>>& tensors);
  std::int64_t columns_of(std::string_view input) const {  // 0: "transform" changes none
    return model.data.arrays ? model.data.arrays->width(input) : 0;
  }
  HostTensor changed(std::string_view input, const HostTensor& rows);
  // The first `count` outputs.
  std::vector<std::pair<std::string, HostTensor>> predict(
      const std::vector<std::pair<std::string, HostTensor>>& tensors, std::size_t count);
  std::vector<GivenRows> in_order(const StepPhase& phase,
                                  const std::vector<std::pair<std::string, HostTensor>>& given) const;
  // Runs the phase of predictions on all rows and calls see(how many there are in the batch, its first `count` outputs,
  // in the units of the model) until it says no: then false.
  bool each_batch(std::size_t index, std::span<const GivenRows> given, std::size_t count,
                  const std::function<bool(std::int64_t, std::span<const HostTensor>)>& see);
  void write_batch(const StepPhase& phase, std::span<const GivenRows> given, std::int64_t first, std::int64_t count);
  void predict(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs);
  // Runs it on all rows; each of the first outputs, in original units, to a span of exactly its bytes.
  void predict_into(const StepPhase& phase, std::span<const GivenRows> given,
                    std::span<const std::span<std::byte>> outputs);
  std::uint64_t sample_bytes(const StepPhase& phase, ir::NodeId node) const;  // of an input or output
  const StepPhase& prediction() const;                                        // throws Error: no outputs
  const StepPhase& predicting() const;                                        // the same; throws Error: no inputs, too
  const TensorType& type_of_output(const StepPhase& phase, std::size_t i) const;  // the same, of one without rows
  void check_predicted_classes(std::string_view input, const GivenRows& given, std::size_t index) const;
  void prepare_predictions();  // what the two need, so that they allocate nothing

  // embedding.cpp
  void prepare_state();                               // what the three need, so that they allocate nothing
  void reject_in_train(std::string_view call) const;  // throws Error: train() is under way, it has called back
  bool losses_finite(std::uint64_t steps);            // of the last training steps
  void save_state(std::span<std::byte> to);
  void load_state(std::span<const std::byte> from);

  // scores/split_scores.cpp
  // `as`: the one output to score, and whether by classes or by numbers; null: all of them, as they are.
  struct ScoredAs {
    std::string_view target;
    bool is_class;
  };
  std::optional<std::vector<OutputScores>> scores(std::string_view name, double until, const ScoredAs* as = nullptr);
  // The metrics of the phase that are scores.
  bool evaluate_scores(const StepPhase& phase, Metrics& metrics, double until);

  Model model;
  std::vector<ClassRange> predicted_classes;        // of what predict() is given
  std::optional<data::FittedStatistics> array_fit;  // of the model's data, from the first rows to change on
  std::vector<HostTensor> changed_rows;             // of predict() into spans
  std::vector<HostTensor> prediction_batch;         // by input of predictions: rows on their way to the arena
  std::vector<GivenRows> predicted;                 // the same: what predict() into spans was given
  std::vector<ExecutorTiming> timings;
  std::shared_ptr<Executor> executor;
  PlanOptions planned;
  SetupTimes times;
  CompiledModel compiled;
  std::unique_ptr<Runnable> runnable;
  std::vector<std::uint64_t> done;  // by phase: steps so far, which is what its counter holds
  TrainingProgress progress;
  std::vector<EpochMean> objectives;  // of each where there are several, as TrainingProgress::epoch
  StateCopy best;        // the parameters of the best evaluation; none without early_stopping's restore_best
  bool written = false;  // a state, since train() last looked
  bool resumes = false;  // the next train() goes on from `progress` and the steps that are done
  std::vector<float> ring_values;
  std::vector<double> totals;  // of an evaluation: of each figure, or of its parts
  std::vector<PlannedFormula> formulas;
  std::map<std::string_view, const Standardization*> fitted_by_input;  // of the model, by input
  struct Pace {
    std::uint64_t steps = 0;  // of the last run(); 0: none yet
    double seconds = 0;       // that it took
    double fastest = 0;       // seconds a step of the fastest run(); 0: none yet
  };
  std::vector<Pace> paces;  // by phase
  struct Watched {
    BufferId buffer = kNoBuffer;
    std::vector<std::byte> bytes;
  };
  std::vector<Watched> watched;  // SessionOptions::watch
  std::vector<std::string> watched_names;
  std::vector<Statistics> watched_statistics;
  std::vector<BufferId> saved;        // states of the program that save_state() keeps
  std::size_t saved_bytes = 0;        // with all that it keeps
  std::uint64_t saved_layout = 0;     // a hash of what lies where
  std::vector<std::byte> piece;       // of a state that is looked at piece by piece
  std::atomic<bool> in_train{false};  // train() runs: cancel() means it
  std::atomic<bool> cancelled{false};
  // For step(): the training steps before the run() that is under way, and whether one is.
  std::atomic<std::uint64_t> steps_before{0};
  std::atomic<bool> stepping{false};
};

// What is behind a Session; throws Error where it was moved away from.
template <class Impl>
Impl& not_moved(const std::unique_ptr<Impl>& impl) {
  return not_moved(impl, "session");
}

}  // namespace graphrun
