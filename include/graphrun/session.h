// session.h: plan a model, load it on an executor, train, evaluate, predict.
// Contract: the constructor plans and allocates; later steps allocate nothing. Calls belong to one thread at a time,
// except cancel() and step(), which any thread or signal handler may call. A Session owns its Model. Errors: Error of
// kind input (model, options), device (executor not available), run (loss not finite).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graphrun/budget.h"
#include "graphrun/communicator.h"
#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "graphrun/model.h"
#include "graphrun/scores.h"

namespace graphrun {

// Use of training-step kernels, compiled when a program is loaded: row regions on a GPU (cuda.md). Other executors
// compile nothing and react only to `require`.
enum class Jit : std::uint8_t {
  prefer,   // use them if possible; if they do not load, plan again without them and report a fallback
  require,  // throw Error if the executor cannot compile them
  off,      // single steps and element regions only
};

struct SessionOptions {
  // "auto" times a few steps on every executor except the reference and restarts the run on the fastest.
  std::string executor = "cpu";
  std::string target;                         // name of an entry of targets(); empty: the executor's default
  std::shared_ptr<Executor> custom_executor;  // used instead of a name when set
  bool passes = true;                         // false: run the graph as built, also without regions
  bool fuse = true;                           // form regions where the executor supports them (regions.md)
  Jit jit = Jit::prefer;
  std::string tiling;  // for row regions on a GPU; one of RegionSummary::choices; empty: the cheapest
  Profiling profiling = Profiling::off;
  OnProgress on_progress = {};  // progress of planning and loading
  int threads = 0;              // threads of the cpu executor; 0: GRAPHRUN_THREADS if set, else all cores
  // Training-step values ("h" or "train/h") with statistics in reports. They stay in memory until the step ends.
  std::vector<std::string> watch = {};
  // Other ranks that train the same model, with TrainSpec::shards; null: none. The constructor waits for all of them.
  std::shared_ptr<Communicator> communicator = {};
};

struct Metrics {
  double loss = 0;
  // Loss of each objective, if there are several, then the metrics, each in the model's order.
  std::vector<std::pair<std::string, double>> values;
};

// Statistics of a watched value's elements after a step. Nonfinite elements count in `nonfinite` only. Class numbers
// and booleans count as numbers.
struct Statistics {
  double min = 0, max = 0, mean = 0, std_dev = 0;
  double zeros = 0, nonfinite = 0;  // fractions of the elements
};

// Progress of train(); valid during the callback.
struct Report {
  std::int64_t epoch = 0;  // finished epochs
  std::int64_t epochs = 0;
  std::uint64_t step = 0;                   // finished steps
  double loss = 0;                          // mean over the samples of the epoch so far
  std::span<const double> objectives = {};  // mean loss per objective, in order; empty if there is one
  const Metrics* validation = nullptr;      // null: not evaluated after this step
  bool due = true;     // false: log_every did not ask for this report; it carries `validation` or `watched`
  double seconds = 0;  // training time so far, without evaluation
  double steps_per_second = 0;
  std::span<const double> lr = {};            // learning rate of the last step, by objective; empty if it has none
  std::span<const double> optimizer = {};     // in the order of Session::optimizer_numbers()
  double lr_factor = 1;                       // factor set by TrainSpec::lr_plateau
  std::span<const Statistics> watched = {};   // in the order of SessionOptions::watch; empty: not computed
  std::optional<std::uint64_t> weights = {};  // hash of the weights, if TrainOptions::hash_weights
};

// A point between two steps of train(). The state is complete and may be saved (checkpoint.h).
struct StepEnd {
  std::uint64_t step = 0;  // finished steps
  std::uint64_t steps_of_epoch = 0;
  bool best = false;  // the evaluation after this step has the lowest validation loss so far
  bool last = false;  // train() returns next; early_stopping may first restore the best parameters
};

struct TrainOptions {
  std::function<void(const Report&)> on_report;  // in this thread, after every log_every or evaluate_every epochs
  std::function<void()> on_first_step;           // after the first step, which runs alone
  bool keep_losses = true;  // store the loss of every step in the result; it reallocates from 2^24 steps on
  // Receives the losses since the previous call. A nonfinite loss is the last one; train() then throws.
  std::function<void(std::span<const double>)> on_losses = {};
  bool hash_weights = false;      // hash the weights for each report; reads all parameters
  std::uint64_t watch_every = 0;  // steps between samples of SessionOptions::watch; 0: with each report
  // If the loss or a parameter becomes nonfinite, run the step again op by op; the Error names the first op that
  // produced a nonfinite value. This keeps a host copy of all states, refreshed in less than 1 % of the time. False: no
  // copy, and the Error names the step only.
  bool trace_not_finite = true;
  // Called in the calling thread several times a second (or after each longer step) and after every multiple of
  // `step_end_every` steps (0: off). Callbacks may change that number. Called after the report, if any.
  std::function<void(const StepEnd&)> on_step_end = {};
  std::uint64_t step_end_every = 0;
};

// Best evaluation of a training run.
struct Best {
  double value = 0;  // value of EarlyStopping::monitor
  std::int64_t epoch = 0;
  std::uint64_t step = 0;
};

struct TrainResult {
  std::int64_t epochs = 0;
  std::uint64_t steps = 0;
  std::uint64_t first_step = 0;  // steps already done by the resumed checkpoint; included in `steps`
  double seconds = 0;            // wall time of training, without evaluation
  bool cancelled = false;
  bool stopped_early = false;
  std::string stopped;         // cause if stop_at or the optimizer ended training, such as "no further descent"
  std::optional<Best> best;    // set if early_stopping saw an evaluation
  bool restored = false;       // the parameters are those of `best`
  double lr_factor = 1;        // final factor of lr_plateau
  std::vector<double> losses;  // one per step
};

// train() found a nonfinite loss or parameter. The session's states are those before the step that produced it.
class GRAPHRUN_API NotFinite : public Error {
 public:
  NotFinite(Diagnostic diagnostic, std::uint64_t steps)
      : Error(ErrorKind::run, {std::move(diagnostic)}), steps_(steps) {}
  ~NotFinite() override;
  std::uint64_t steps() const { return steps_; }  // training steps behind the session's parameters, which are finite

 private:
  std::uint64_t steps_;
};

// Duration of the constructor, by stage.
struct SetupTimes {
  double plan = 0;   // seconds: step graph, passes, offsets
  double load = 0;   // Executor::load()
  double write = 0;  // copy of the data set and the initial weights into the arena
};

// Measurement by executor "auto".
struct ExecutorTiming {
  std::string executor;
  double seconds_per_step = 0;
  std::string reason;  // reason if it was not measured; else empty
};

// Regions of a plan (regions.md) and the memory traffic they save.
struct RegionSummary {
  std::string phase;
  std::size_t steps = 0, row_steps = 0, stages = 0;  // row_steps are included in steps
  std::size_t chains = 0;                            // chains of an element region, which has no stages
  Tiling tiling;
  std::string tiling_name;                                    // one of `choices`; empty if there are none
  std::vector<std::pair<std::string, std::int64_t>> choices;  // name and estimated cost, cheapest first
  std::uint64_t bytes_in_tiles = 0;  // size of all values kept in tiles or registers, which never reach the arena
};
struct FusionSummary {
  std::vector<RegionSummary> regions;
  // "phase: value: reason it is not in a region", and data sets of 8-bit images in f32, with the reason.
  std::vector<std::string> notes;
  // "mine has no kernel for tanh: cpu's runs 2 steps" (host_executor.h), "cuda runs no whole step as one kernel: ..."
  std::vector<std::string> fallbacks;
  BudgetSummary budget;
};

// Handle of a session state (parameter, moment, counter, data set column), so that names are looked up once.
struct ValueId {
  BufferId buffer = kNoBuffer;
};

class GRAPHRUN_API Session {
 public:
  Session(Model model, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Trains for the model's number of epochs; after load_checkpoint() (checkpoint.h) it resumes up to that number. After
  // the first step it allocates nothing, unless callbacks do or it keeps more than 2^24 losses. Its callbacks must not
  // call train(), advance(), run_until() or load_checkpoint(). Throws NotFinite for a nonfinite loss or parameter at
  // the next check: after a report's epochs or 4096 steps.
  TrainResult train(const TrainOptions& options);
  TrainResult train(const std::function<void(const Report&)>& on_report = {});
  // Asks a running train() to return after the steps in flight: one step or about 25 ms. No step is left half done. No
  // effect if train() is not running.
  void cancel() noexcept;

  // Runs `steps` training steps. Returns false if one of their last 4096 losses is not finite.
  bool advance(std::uint64_t steps);
  // Runs at most `max_steps` training steps until the deadline; returns the number run. A step starts if the fastest so
  // far would end in time (the session's first: if any time is left), and always runs to its end.
  std::uint64_t run_until(std::chrono::steady_clock::time_point deadline,
                          std::uint64_t max_steps = std::numeric_limits<std::uint64_t>::max());
  // Returns whether the losses of the last `steps` training steps (at most 4096) are all finite.
  bool losses_finite(std::uint64_t steps);
  // Current or last training step, counted from 1; 0 before the first. Safe from any thread or signal handler.
  std::uint64_t step() const noexcept;

  // Loss and metrics of a whole split with the current weights. Throws Error if the split does not exist.
  Metrics evaluate(std::string_view split);
  // The same, or nullopt if it takes longer than `seconds`.
  std::optional<Metrics> evaluate(std::string_view split, double seconds);
  // Metrics of each output with a target over a whole split, with the current weights (metrics.md). Outputs with
  // nonfinite values are left out. Runs predictions; memory grows with the rows of the split.
  std::vector<OutputScores> scores(std::string_view split);
  // `with_curves`: also fills PerClassScores::curve.
  std::optional<std::vector<OutputScores>> scores(std::string_view split, double seconds, bool with_curves = false);
  // Sets DataSet::thresholds of the model by the curves of this split: for every output with two classes, and for every
  // label. Returns false if there are none, or if it takes longer than `seconds`; the thresholds are then 1/2.
  bool choose_thresholds(const ThresholdRule& rule, std::string_view split,
                         double seconds = std::numeric_limits<double>::infinity());
  void set_thresholds(std::vector<FittedStatistic> thresholds);
  // Importance of each column that predictions use, largest mean first: how much worse `metric` ("loss" or one of
  // metric_names()) of the split becomes if the column is shuffled among its rows. Shuffles depend on the model's seed.
  std::vector<Importance> importance(std::string_view split, const std::string& metric, std::uint64_t repeats = 10);
  // "(intercept)" and a coefficient per column or category ("city=Ulm") of the first output, in original units
  // (log(area) and the logarithm of the target, if those are transformed). Throws Error if the output is not linear.
  std::vector<std::pair<std::string, double>> coefficients();
  // Confidence intervals of the parameters, from the loss of all training rows, which must be a sum of squares (as for
  // levenberg_marquardt). Computed in fp64 on the CPU by a separate plan. Throws Error if they do not exist: a singular
  // matrix, no more residuals than parameters, l2 or weight decay.
  FitIntervals intervals(double probability = 0.95);
  bool has_split(std::string_view split) const;
  std::vector<std::string> metric_names() const;  // names of evaluate()'s values
  std::vector<std::string> watched() const;       // SessionOptions::watch
  // Reasons why train() may learn less than expected: a schedule that reaches 0 early, batch norm on one row,
  // minibatches of rows that are sorted by a target.
  std::vector<std::string> training_warnings() const;

  // Outputs by name for each sample of `inputs`, in original units; predict() returns the first output only.
  std::vector<std::pair<std::string, HostTensor>> predict_all(
      const std::vector<std::pair<std::string, HostTensor>>& inputs);
  HostTensor predict(const std::vector<std::pair<std::string, HostTensor>>& inputs);

  // State of the optimizer by name, after the last step. levenberg_marquardt: accepted (steps), damping, gradient_norm;
  // also the states "train:accepted" and so on. Empty for other optimizers.
  std::vector<std::pair<std::string, double>> optimizer_numbers() const;

  HostTensor read(std::string_view name);  // reads a state by name: parameter, moment, counter
  void write(std::string_view name, const HostTensor& value);

  // For programs that embed a session: these allocate nothing after find(). Elements have type(id), row-major. Throws
  // Error (kind input) for an unknown name or id, or a wrong size. A data set of 8-bit images (Split::codes) has type
  // f32, too, even if it is stored in a byte per element: then a write of another value than byte / divisor throws
  // Error (code "state.code"). A split with Split::rows_vary is stored as f32 and takes any values.
  ValueId find(std::string_view name) const;  // accepts the names of read()
  const TensorType& type(ValueId id) const;
  void read(ValueId id, std::span<std::byte> bytes);
  void write(ValueId id, std::span<const std::byte> bytes);
  // Writes as many rows of dimension 0, from first_row on, as `bytes` holds. Cost depends on these rows only.
  void write_rows(ValueId id, std::int64_t first_row, std::span<const std::byte> bytes);
  // Sets how many samples of a split, counted from its first, training and evaluation use. Range: 1 (with drop_last:
  // one batch) to the capacity, which is the size of its tensors. Requires Split::rows_vary. Constant time. Not allowed
  // in callbacks of train().
  void set_rows(std::string_view split, std::int64_t rows);
  // State that determines the rest of a training run, without data and row counts: parameters, slots, counters, runtime
  // scalars, progress of train(). The caller owns the buffer of exactly state_bytes(). A run resumed by load_state() is
  // bitwise identical. Accepts buffers of any session with the same model and build. Throws Error for states with other
  // names or shapes, without changing anything. Allocates nothing. Not allowed in callbacks of train().
  std::size_t state_bytes() const;
  void save_state(std::span<std::byte> to);
  void load_state(std::span<const std::byte> from);
  // Loss of the last training step; NaN before the first.
  double loss();
  // Inputs in the order of prediction_inputs(), and the first outputs in the model's order, as many as given. Each
  // holds the rows of its type in original units (f32 if standardized). Same results as predict() above. With
  // DType::f64 for `floats`, inputs of f32 are given as f64, and transformed before they are rounded.
  void predict(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs,
               DType floats = DType::f32);
  // Types of predict()'s inputs and outputs, with the batch of the plan as dimension 0.
  std::vector<std::pair<std::string, TensorType>> prediction_inputs() const;
  std::vector<std::pair<std::string, TensorType>> prediction_outputs() const;
  std::string weights_hash();                               // FNV-1a over the bytes of the parameters, 16 hex digits
  std::optional<std::string> weights_hash(double seconds);  // nullopt if it takes longer than `seconds`

  // Counters of the executor: "allocations", "launches", … (Runnable::counters()); empty if it has none.
  std::vector<std::pair<std::string, std::uint64_t>> counters() const;

  const SetupTimes& setup_times() const;
  const std::vector<ExecutorTiming>& timings() const;  // empty unless "auto" chose the executor
  // Time spent since the constructor began; empty unless SessionOptions::profiling is set.
  Profile profile() const;

  const Program& program() const;
  FusionSummary fusion() const;
  const Model& model() const;
  std::string_view executor() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  friend struct SessionAccess;  // for checkpoints
};

// Times a few training steps on each named executor except the reference, each from its own start. Fastest first, then
// those that could not be measured.
GRAPHRUN_API std::vector<ExecutorTiming> time_executors(const Model& model, const SessionOptions& options = {});

// Plans without loading; needs no device. `fusion` receives the summary of regions, if not null.
GRAPHRUN_API Program plan_program(const Model& model, const SessionOptions& options = {},
                                  FusionSummary* fusion = nullptr);
// One line per value with its kind (Row, Shared, Reduced, Opaque) and placement, then the notes.
GRAPHRUN_API std::string rows_text(const Model& model, const SessionOptions& options = {});
// Source of the kernels that the executor generates for training steps, and the reasons why other steps have none.
// Needs no device.
struct GeneratedSource {
  std::string text;                  // empty if there are none
  bool trains = false;               // a kernel runs steps of training, if the model has any
  std::vector<std::string> reasons;  // "train: h1.z: ..."
};
GRAPHRUN_API GeneratedSource generated_source(const Model& model, const SessionOptions& options = {});

}  // namespace graphrun
