// session.h: plan a model, load it on an executor, train, evaluate, predict.
// Contract: the constructor plans and allocates; afterwards a step allocates nothing. All calls belong to one thread at
// a time, but for cancel(), which any thread or signal handler may call. A Session owns its Model. Errors: Error of
// kind input (model, options), device (executor not available), run (a loss that is not finite).
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
#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "graphrun/model.h"
#include "graphrun/scores.h"

namespace graphrun {

// Whole steps as kernels that are compiled when a program is loaded: regions over rows on a GPU (cuda.md). Other
// executors compile nothing, and only `require` means something to them.
enum class Jit : std::uint8_t {
  prefer,   // where the executor can; where they do not load, the plan is made again without and a fallback tells why
  require,  // where it cannot is an Error
  off,      // steps and regions over elements only
};

struct SessionOptions {
  // "auto" times a few steps on every executor but the reference and takes the fastest; the run then starts afresh on
  // it.
  std::string executor = "cpu";
  std::string target;                         // name of a row of targets(); empty: the executor's default
  std::shared_ptr<Executor> custom_executor;  // used instead of a name when set
  bool passes = true;                         // false: the graph runs as it was built, without regions too
  bool fuse = true;                           // regions where the executor takes them (regions.md)
  Jit jit = Jit::prefer;
  std::string tiling;  // of regions over rows on a GPU, by the names in RegionSummary::choices; empty: the cheapest
  Profiling profiling = Profiling::off;
  OnProgress on_progress = {};  // of planning and loading
  int threads = 0;              // of the cpu executor; 0: the environment's GRAPHRUN_THREADS, else the cores there are
  // Values of a training step whose statistics reports tell ("h" or "train/h"); they stay in memory until its end.
  std::vector<std::string> watch = {};
};

struct Metrics {
  double loss = 0;
  // The losses of the objectives, where there are several, then the metrics, each in the model's order.
  std::vector<std::pair<std::string, double>> values;
};

// Of the elements of a watched value after a step; what is not finite is counted in `nonfinite` and nowhere else. Class
// numbers and truth values count as numbers.
struct Statistics {
  double min = 0, max = 0, mean = 0, std_dev = 0;
  double zeros = 0, nonfinite = 0;  // shares of the elements
};

// What is told while it trains; valid during the call.
struct Report {
  std::int64_t epoch = 0;  // finished epochs
  std::int64_t epochs = 0;
  std::uint64_t step = 0;                   // finished steps
  double loss = 0;                          // mean over the samples of the epoch so far
  std::span<const double> objectives = {};  // the same of each objective's, in the model's order; none: there is one
  const Metrics* validation = nullptr;      // null: not evaluated after this step
  bool due = true;     // by log_every, or the last; false: made for its validation or `watched` only
  double seconds = 0;  // of training so far, evaluation apart
  double steps_per_second = 0;
  double lr_factor = 1;                       // of TrainSpec::lr_plateau
  std::span<const Statistics> watched = {};   // in the order of SessionOptions::watch; empty: not looked at
  std::optional<std::uint64_t> weights = {};  // their hash, if TrainOptions::hash_weights
};

// Between two steps of train(): the state is whole and may be saved (checkpoint.h).
struct StepEnd {
  std::uint64_t step = 0;  // finished steps
  std::uint64_t steps_of_epoch = 0;
  bool best = false;  // no evaluation of the training had a lower validation loss than the one after this step
  bool last = false;  // train() returns, and early_stopping may put the parameters of the best evaluation in place
};

struct TrainOptions {
  std::function<void(const Report&)> on_report;  // in this thread, after every log_every or evaluate_every epochs
  std::function<void()> on_first_step;           // when the first step has been run, which is then run alone
  bool keep_losses = true;                       // of every step, in the result; from 2^24 steps on they are moved
  // The losses of the steps since the last call; one that is not finite is the last, and then train() throws.
  std::function<void(std::span<const double>)> on_losses = {};
  bool hash_weights = false;      // for each report; a look at all parameters
  std::uint64_t watch_every = 0;  // steps between looks at SessionOptions::watch; 0: with each report
  // Where the loss or a parameter stops being finite the step is run again, op by op, and the Error names the one that
  // began it. For this a copy of all states is kept on the host, made anew for less than 1 % of the time. False: no
  // copy, and the Error names the step only.
  bool trace_not_finite = true;
  // In this thread, several times a second or after each step that takes longer, and after every multiple of
  // `step_end_every` steps (0: of none), which callbacks may change; after the report where there is one.
  std::function<void(const StepEnd&)> on_step_end = {};
  std::uint64_t step_end_every = 0;
};

// The best evaluation that a training has seen.
struct Best {
  double value = 0;  // of EarlyStopping::monitor
  std::int64_t epoch = 0;
  std::uint64_t step = 0;
};

struct TrainResult {
  std::int64_t epochs = 0;
  std::uint64_t steps = 0;
  std::uint64_t first_step = 0;  // of `steps`: those of the checkpoint it went on from
  double seconds = 0;            // wall time of training, evaluation apart
  bool cancelled = false;
  bool stopped_early = false;
  std::optional<Best> best;    // with early_stopping, and where there was one
  bool restored = false;       // the parameters are those of `best`
  double lr_factor = 1;        // of lr_plateau, at last
  std::vector<double> losses;  // of every step
};

// train() met a loss or a parameter that is not finite. The session's states are those before the step that began it.
class GRAPHRUN_API NotFinite : public Error {
 public:
  NotFinite(Diagnostic diagnostic, std::uint64_t steps)
      : Error(ErrorKind::run, {std::move(diagnostic)}), steps_(steps) {}
  ~NotFinite() override;
  std::uint64_t steps() const { return steps_; }  // of training that the session's parameters have seen: all finite

 private:
  std::uint64_t steps_;
};

// How long the constructor took, and what for.
struct SetupTimes {
  double plan = 0;   // seconds: step graph, passes, offsets
  double load = 0;   // Executor::load()
  double write = 0;  // data set and first weights into the arena
};

// What executor "auto" measured.
struct ExecutorTiming {
  std::string executor;
  double seconds_per_step = 0;
  std::string reason;  // why it was not measured; empty when it was
};

// What runs as regions (regions.md), and what they save.
struct RegionSummary {
  std::string phase;
  std::size_t steps = 0, row_steps = 0, stages = 0;  // row steps among the steps
  std::size_t chains = 0;                            // over elements, instead of stages
  Tiling tiling;
  std::string tiling_name;                                    // among the choices; empty where there are none
  std::vector<std::pair<std::string, std::int64_t>> choices;  // and what a model of costs says, the cheapest first
  std::uint64_t bytes_in_tiles = 0;  // or in registers: of values, each counted whole, that never reach the arena
};
struct FusionSummary {
  std::vector<RegionSummary> regions;
  std::vector<std::string> notes;  // "phase: value: why it is not in a region"
  // "mine has no kernel for tanh: cpu's runs 2 steps" (host_executor.h), "cuda runs no whole step as one kernel: ..."
  std::vector<std::string> fallbacks;
  BudgetSummary budget;
};

// A state of a session (a parameter, a moment, a counter, a column of a data set) by number: names are looked up once.
struct ValueId {
  BufferId buffer = kNoBuffer;
};

class GRAPHRUN_API Session {
 public:
  Session(Model model, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Trains for the model's number of epochs; after load_checkpoint() (checkpoint.h) it goes on to that number. From the
  // return of the first step to its own it allocates nothing, unless the callbacks do or losses of more than 2^24 steps
  // are kept. Neither it nor advance(), run_until() or load_checkpoint() may be called from its callbacks. Throws
  // NotFinite for a loss or a parameter that is not finite, at the next look: after a report's epochs or 4096 steps.
  TrainResult train(const TrainOptions& options);
  TrainResult train(const std::function<void(const Report&)>& on_report = {});
  // Asks the train() that is under way to return after the steps in flight: about 25 ms of them, or one. It returns as
  // if it had ended there: no step is half done. Without a train() under way nothing happens.
  void cancel() noexcept;

  // Runs so many training steps. False: a loss among them, of the last 4096 at most, is not finite.
  bool advance(std::uint64_t steps);
  // Runs training steps, `most` at most, until that moment, and tells how many. A step is begun where the fastest one
  // so far would end in time, and the first of the session in any case while there is time; each is run to its end.
  std::uint64_t run_until(std::chrono::steady_clock::time_point deadline,
                          std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
  // Of the last so many training steps, of 4096 at most: whether all losses are finite.
  bool losses_finite(std::uint64_t steps);
  // The training step that runs or was run last, from 1 on; 0 before the first. Any thread or signal handler may ask.
  std::uint64_t step() const noexcept;

  // Loss and metrics over a whole split with the present weights; throws Error when the split does not exist.
  Metrics evaluate(std::string_view split);
  // The same when it takes no longer than so many seconds; else nothing.
  std::optional<Metrics> evaluate(std::string_view split, double seconds);
  // What each output with a target is worth over a whole split, with the present weights (metrics.md); those whose
  // numbers are not finite are left out. Runs predictions; takes memory by the split's rows.
  std::vector<OutputScores> scores(std::string_view split);
  std::optional<std::vector<OutputScores>> scores(std::string_view split, double seconds);
  bool has_split(std::string_view split) const;
  std::vector<std::string> metric_names() const;  // of what evaluate() gives beside the loss
  std::vector<std::string> watched() const;       // SessionOptions::watch
  // What makes train() learn less than the model says: a schedule that is 0 before the end, a batch norm of one row.
  std::vector<std::string> training_warnings() const;

  // The outputs by name for each sample of `inputs` (original units in, original units out), or the first of them.
  std::vector<std::pair<std::string, HostTensor>> predict_all(
      const std::vector<std::pair<std::string, HostTensor>>& inputs);
  HostTensor predict(const std::vector<std::pair<std::string, HostTensor>>& inputs);

  HostTensor read(std::string_view name);  // a state by name: a parameter, a moment, a counter
  void write(std::string_view name, const HostTensor& value);

  // For programs that embed a session: after the look-ups these allocate nothing. Elements are those of type(id) in
  // row-major order. Throws Error (kind input) for a name, an id or a size that does not fit.
  ValueId find(std::string_view name) const;  // a state, as read() names it
  const TensorType& type(ValueId id) const;
  void read(ValueId id, std::span<std::byte> bytes);
  void write(ValueId id, std::span<const std::byte> bytes);
  // Rows [first_row, ...) of dimension 0, as many as the bytes hold; the time depends on these rows alone.
  void write_rows(ValueId id, std::int64_t first_row, std::span<const std::byte> bytes);
  // How many samples of a split are in use, from its first on: what trainings and evaluations from now on see, and what
  // their batches are made of. From 1 (with drop_last a batch) to the capacity, which is the size of its tensors. Of a
  // split whose Split::rows_vary was set; a constant time. Not within callbacks of train().
  void set_rows(std::string_view split, std::int64_t rows);
  // All that decides how a training goes on, but for the data and the numbers of their rows: parameters, slots,
  // counters, run-time scalars, how far train() is. In a buffer of the caller's, of exactly state_bytes(); what
  // load_state() puts back goes on with the same bits. It takes the buffers of any session of the same model on the
  // same build, and throws Error for one whose states have other names or shapes, changing nothing. Allocates nothing.
  // Not within callbacks of train().
  std::size_t state_bytes() const;
  void save_state(std::span<std::byte> to);
  void load_state(std::span<const std::byte> from);
  // The loss of the training step that was run last; NaN before the first.
  double loss();
  // Inputs in the order of prediction_inputs() and the first outputs in the model's order, as many as are given, each
  // as the rows of its type; original units in and out, f32 for values that were standardized. Same bits as above.
  void predict(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs);
  // What predict() takes and gives, with the batch of the plan as dimension 0.
  std::vector<std::pair<std::string, TensorType>> prediction_inputs() const;
  std::vector<std::pair<std::string, TensorType>> prediction_outputs() const;
  std::string weights_hash();                               // of the parameters' bytes, FNV-1a, 16 hex digits
  std::optional<std::string> weights_hash(double seconds);  // as evaluate()

  // What the executor counted so far: "allocations", "launches", … (Runnable::counters()); empty if it counts nothing.
  std::vector<std::pair<std::string, std::uint64_t>> counters() const;

  const SetupTimes& setup_times() const;
  const std::vector<ExecutorTiming>& timings() const;  // empty unless the executor was chosen by "auto"
  // Where the time went since the constructor began; empty unless SessionOptions::profiling asked for it.
  Profile profile() const;

  const Program& program() const;
  FusionSummary fusion() const;
  const Model& model() const;
  std::string_view executor() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  friend struct SessionAccess;  // of checkpoints
};

// A few training steps on each executor that is known by name, but the reference, from a start of its own; the fastest
// first, then those that could not be measured.
GRAPHRUN_API std::vector<ExecutorTiming> time_executors(const Model& model, const SessionOptions& options = {});

// Plans without loading: needs no device. `fusion`: where to tell of regions.
GRAPHRUN_API Program plan_program(const Model& model, const SessionOptions& options = {},
                                  FusionSummary* fusion = nullptr);
// A line for each value with its kind (Row, Shared, Reduced, Opaque) and its place, then the notes.
GRAPHRUN_API std::string rows_text(const Model& model, const SessionOptions& options = {});
// The source of the kernels that the executor generates for whole training steps, and why it does so for no other
// step; needs no device.
struct GeneratedSource {
  std::string text;                  // empty: there are none
  bool trains = false;               // one of them runs steps of the training, if the model has one
  std::vector<std::string> reasons;  // "train: h1.z: ..."
};
GRAPHRUN_API GeneratedSource generated_source(const Model& model, const SessionOptions& options = {});

}  // namespace graphrun
