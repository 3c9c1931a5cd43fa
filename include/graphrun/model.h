// model.h: a model ready to run: its graph, training settings and data.
// Contract: plain data, except the builder. load_model() reads a model file (model-format.md) and its data; it throws
// Error with up to 50 errors of the file. A Model belongs to one thread at a time.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/graph_builder.h"
#include "graphrun/math_mode.h"
#include "graphrun/params.h"
#include "graphrun/tensor.h"

namespace graphrun {

// Applied to a value before it is shifted and scaled.
enum class LogTransform : std::uint8_t { none, log, log1p };
inline double apply_log(LogTransform log, double value) {  // nonfinite outside the domain of the logarithm
  return log == LogTransform::none ? value : log == LogTransform::log ? std::log(value) : std::log1p(value);
}
inline double invert_log(LogTransform log, double value) {
  return log == LogTransform::none ? value : log == LogTransform::log ? std::exp(value) : std::expm1(value);
}

// Transform of an input's columns, fitted on the training split: stored = (log(original) - shift) / scale.
struct Standardization {
  std::string input;
  std::vector<double> shift, scale;       // one entry per column
  LogTransform log = LogTransform::none;  // for all columns
};

// Other statistics fitted on the training split, named by their source: "age:mean" of a column, "x:aggregate.0 of a -
// mean(a)" of a formula.
struct FittedStatistic {
  std::string name;
  std::vector<double> values;
};

// An input whose samples are windows over shared rows: sample i holds the rows i * hop to i * hop + length - 1. A plan
// stores each row once (hop < length).
struct WindowedInput {
  std::string input;
  std::int64_t length = 1, hop = 1;
  std::int64_t rows(std::int64_t samples) const { return (samples - 1) * hop + length; }
};

// A split of the data: one tensor per input; dimension 0 counts the samples.
struct Split {
  std::string name;  // "train", "validation", "test"
  std::vector<std::pair<std::string, HostTensor>> columns;
  std::int64_t declared = 0;                // samples, if the columns were not read (LoadOptions::data)
  std::vector<std::string> original = {};   // columns in original units, to which a Session applies "transform"
  std::string first = {}, last = {};        // with "split_by": earliest and latest value of its column
  bool rows_vary = false;                   // Session::set_rows() may set the rows in use; the columns set the capacity
  std::vector<WindowedInput> windows = {};  // their columns still hold every sample, with its own copy of each row
  // Inputs read from bytes, and divisors: each value is the f32 of byte / divisor. A Session may store their columns in
  // a byte per element. Remove an entry when you change its column.
  std::vector<std::pair<std::string, double>> codes = {};
  std::int64_t samples() const { return columns.empty() ? declared : columns.front().second.shape()[0]; }
};

// Source columns that an input lists, in the order in which a program passes them.
struct InputColumns {
  std::string input;
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> words;  // per column: known categorical values, if any
  std::vector<std::size_t> widths;              // per column: elements of the input; more than 1 if it is one-hot
};

// Choice of a decision threshold from the precision and recall of a class at each threshold.
struct ThresholdRule {
  // value: `at` itself; f1: largest F1; recall: largest precision among the thresholds with at least the recall `at`;
  // precision: largest recall with at least this precision, or the largest precision; cost: smallest total of `cost`.
  enum class By : std::uint8_t { value, f1, recall, precision, cost };
  By by = By::f1;
  double at = 0;
  std::array<double, 4> cost = {0, 1, 1, 0};  // cost of a row: (actual, predicted), as in a confusion matrix
};

namespace data {
class ArrayRows;
}

struct DataSet {
  std::vector<Split> splits;
  std::vector<Standardization> standardizations;
  std::vector<std::string> warnings;
  bool accepts_unseen = false;  // LoadOptions::accepts_unseen
  std::vector<FittedStatistic> fitted;
  // Decision thresholds, by name of the output: one value for two classes, or one per label (class_outputs.h).
  std::vector<FittedStatistic> thresholds;
  std::string provenance;  // JSON stored in weights files: columns, split and seed
  // With LoadOptions::weights: why the splits differ from those of training; empty if they match.
  std::string split_mismatch;
  // Class labels of each categorical target (data.md); also known from weights.
  std::vector<std::pair<std::string, std::vector<std::string>>> labels;
  std::vector<std::string> files;  // files opened for the data
  std::vector<InputColumns> columns;
  std::shared_ptr<const data::ArrayRows> arrays;  // converts rows given by a program; null: no "data" section
  const Split* find(std::string_view split) const {
    for (const Split& s : splits) {
      if (s.name == split) return &s;
    }
    return nullptr;
  }
};

// A scalar of the graph, or a built-in metric (ops.md, "Metrics") applied to each (output, target). A scalar that has a
// built-in name must compute that metric.
struct MetricSpec {
  std::string name;
  Value value;  // invalid: the built-in metric of that name
};

// Value that changes during training: model-format.md, "Schedules".
struct ScheduleSpec {
  std::string name;     // "cosine"
  AttrList attributes;  // from, to, and one of steps or epochs; warmup
};

struct OptimizerSpec {
  std::string name = "sgd";
  std::vector<std::pair<std::string, double>> attributes = {{"lr", 0.01}};
  std::optional<ScheduleSpec> lr;  // replaces the attribute lr, which must still exist
  // Runtime hyperparameters: the host may change these attributes between steps. Each is a state ("train:lr").
  std::vector<std::string> runtime = {};
};

struct OutputSpec {
  Value value;
  std::string name;
  std::string target;  // input with the actual values; may be empty
};

// Validation metric that training monitors, and the criterion for an improvement.
struct Monitor {
  enum class Mode : std::uint8_t { automatic, min, max };  // automatic: the direction of a built-in metric
  std::string monitor = "loss";                            // or the name of a metric
  Mode mode = Mode::automatic;
  std::int64_t patience = 10;  // evaluations without improvement
  double min_delta = 0;        // smaller improvements do not count
};

// Ends training after `patience` evaluations in a row without improvement.
struct EarlyStopping : Monitor {
  bool restore_best = true;  // finally restore the parameters of the best evaluation
};

// Multiplies the learning rate (also a scheduled one) by `factor` after `patience` evaluations in a row without
// improvement.
struct LrPlateau : Monitor {
  double factor = 0.1;
  std::int64_t cooldown = 0;  // evaluations to ignore afterwards
  double min_factor = 0;      // lower bound of the product of all factors
};

// Ends training after the first step whose loss is at most `loss`, or in whose gradient no element is larger than
// `gradient`.
struct StopAt {
  double loss = 0;
  double gradient = 0;  // 0: not checked
};

// One of several losses, with the parameters that only it updates. An objective sees the updates of earlier objectives
// in the same step; no gradient passes through those updates.
struct ObjectiveSpec {
  std::string name;  // its loss is reported under this name, like a metric
  Value minimize;
  std::vector<Value> parameters;
  OptimizerSpec optimizer;
  std::int64_t every = 1;  // update interval in steps, such as critic steps per generator step
};
inline constexpr std::int64_t kMaxEvery = std::int64_t{1} << 24;

struct TrainSpec {
  Value minimize;  // over all trainable parameters, with `optimizer`
  std::vector<MetricSpec> metrics;
  OptimizerSpec optimizer;
  // In the order of a step, instead of `minimize` and `optimizer`. The loss of the model is their sum.
  std::vector<ObjectiveSpec> objectives;
  double clip_norm = 0;   // maximum norm of the gradients over all parameters of an objective; 0: no clipping
  double clip_value = 0;  // maximum absolute value of each element of a gradient, before clip_norm; 0: no clipping
  bool clip_norm_at_run_time = false;  // a state, "train:clip_norm", that starts from clip_norm
  std::int64_t epochs = 1;
  std::uint64_t seed = 0;
  bool shuffle = false;                   // shuffle training rows each epoch
  bool drop_last = false;                 // skip a last batch that is not full
  Precision precision = Precision::fp32;  // in every phase
  std::int64_t shards = 1;                // parts of each training batch; results depend on it (ranks.md)
  MathMode math = MathMode::fast;         // on a device, in row regions
  // Validation interval, in epochs or in steps (only one is set). Both 0: after the last epoch only, or after each
  // epoch with early_stopping or lr_plateau.
  std::int64_t evaluate_every = 0, evaluate_every_steps = 0;
  std::optional<EarlyStopping> early_stopping;
  std::optional<LrPlateau> lr_plateau;
  std::optional<StopAt> stop_at;
  // Sets DataSet::thresholds by the split "validation" when train() ends.
  std::optional<ThresholdRule> threshold;
  std::int64_t log_every = 0;    // epochs; 0: chosen for at most 200 reports
  bool log_spaced = false;       // report after 1, 2, 5, 10, 20, 50, ... epochs instead
  std::uint64_t max_memory = 0;  // limit in bytes for a plan; 0: no limit
  bool largest_batch = false;    // use the largest batch that fits, up to the builder's
};

struct Model {
  explicit Model(GraphBuilder builder) : graph(std::move(builder)) {}
  std::string name;
  std::string file;  // source file; empty if the model was built in code
  // Returns the file's canonical_model() text, overrides included, for weights to store. Not set if the model was built
  // in code. The text is empty if it would exceed 16 MiB.
  std::function<std::string()> canonical;
  GraphBuilder graph;
  std::vector<OutputSpec> outputs;
  TrainSpec train;
  DataSet data;
};

// Current activity and its progress from 0 to 1 (negative: unknown). Called often, in the thread that called the
// library; it must be fast.
using OnProgress = std::function<void(std::string_view what, double done)>;

// Use of the data by load_model().
enum class DataUse {
  values,  // all values
  // Sample counts only; opens files only if the model lacks the sizes, or to find images in bytes (Split::codes).
  // Enough for plan_program().
  sizes,
  // Opens no file and leaves out splits of unknown size. A batch "all" is unknown; with weights it is 1024, to predict
  // with, unless an output depends on more than its own row.
  none,
  // Like `none`, but without splits: the program passes its own data, or predicts. A batch "all" is all rows of that
  // data.
  given,
};

struct LoadOptions {
  std::string data_dir;                                        // searched after the model's own folder
  std::vector<std::pair<std::string, std::string>> overrides;  // "train.epochs" -> "100", as with --set
  DataUse data = DataUse::values;
  // Weights file (weights.h) to start from: parameters, fitted statistics and the seed of the split.
  std::string weights = {};
  // Positive: load the model to predict this many rows. No split is read. The batch follows from the model; it is the
  // training batch if an output depends on more than its own row (data.md).
  std::int64_t predicts = 0;
  // File of labelled rows to evaluate instead of the model's data; the only split is then "data". Fitted statistics
  // come from `weights`. `format` as in InputOptions.
  std::string evaluates = {}, format = {};
  // Accepts rows whose class the model does not know, in a target with "one_hot": all their numbers are 0. Metrics of
  // scores.h count them as misses.
  bool accepts_unseen = false;
  // If set, the first call stores the model file's bytes here for later calls: a pipe can be read only once.
  std::shared_ptr<std::optional<std::string>> text = {};
  std::shared_ptr<std::optional<std::string>> piped_weights = {};  // the same for `weights`, if that is a pipe
  OnProgress on_progress = {};                                     // progress of reading the data
};

// `path` is a model file, or a safetensors weights file that contains its model (weights.h). LoadOptions::weights then
// defaults to that file.
GRAPHRUN_API Model load_model(const std::string& path, const LoadOptions& options = {});

// Applies "transform" to the columns of Split::original. It is fitted to the split "train" unless the statistics came
// with weights or with data that were read. A Session calls it on its model. Throws Error.
GRAPHRUN_API void change_original(Model& model);

// Returns whether `model` is such a weights file.
GRAPHRUN_API bool is_weights(const std::string& model, const LoadOptions& options = {});

// Options for reading a file of rows.
struct InputOptions {
  std::string format = {};             // "csv", "json", "npy", "npz" or "idx"; empty: detect (data.md)
  std::vector<std::string> keep = {};  // columns whose text is returned in addition to the inputs
};

struct InputRows {
  std::vector<std::pair<std::string, HostTensor>> inputs;  // for Session::predict()
  std::vector<std::vector<std::string>> kept;              // for each of InputOptions::keep, its text by row
  // Columns and their numbers of rows far outside the training rows (training.md).
  std::vector<std::pair<std::string, std::int64_t>> far = {};
  // Rows of a window, and the row of the file that the first sample predicts. The next sample predicts the next row. A
  // length of 0: the model has no windows, and a sample is a row.
  std::int64_t window_length = 0, target_row = 0;
  // Per number of a row in a window: its input, its name, and the target and element that predict it, if any.
  struct Feed {
    std::string input, name, target;
    std::size_t element = 0;
  };
  std::vector<Feed> feeds = {};
  std::int64_t rows() const { return inputs.front().second.shape()[0]; }
};

// Reads the rows of a file as inputs of Session::predict(), in original units. f32 inputs are f64, so that
// standardization sees unrounded values. Names follow data.md, "Predictions"; unused columns are ignored. Fitted
// statistics come from LoadOptions::weights. The constructor reads the model and opens the file ("-": stdin). Throws
// Error. Belongs to one thread at a time.
class GRAPHRUN_API InputReader {
 public:
  InputReader(const std::string& model, const std::string& path, const LoadOptions& options = {},
              const InputOptions& how = {});
  ~InputReader();
  InputReader(InputReader&&) noexcept;
  InputReader& operator=(InputReader&&) noexcept;

  // All rows of a file. For a pipe of CSV or JSON Lines: waits for rows and returns those that arrived; nullopt at the
  // end. If outputs depend on more than their own row, all rows are returned together.
  std::optional<InputRows> next();
  bool streams() const;  // whether next() may return several blocks

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Reads all rows in one call.
GRAPHRUN_API std::vector<std::pair<std::string, HostTensor>> load_inputs(const std::string& model,
                                                                         const std::string& path,
                                                                         const LoadOptions& options = {});

}  // namespace graphrun
