// model.h: a model ready to run: its graph, what to train and how, and the data.
// Contract: plain data beside the builder; load_model() reads a model file (model-format.md) and its data and
// throws Error with every mistake of the file. A Model belongs to one thread at a time.
#pragma once

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

// What is done to a number before it is shifted and scaled.
enum class LogTransform : std::uint8_t { none, log, log1p };
inline double apply_log(LogTransform log, double value) {  // not finite where there is no logarithm
  return log == LogTransform::none ? value : log == LogTransform::log ? std::log(value) : std::log1p(value);
}
inline double invert_log(LogTransform log, double value) {
  return log == LogTransform::none ? value : log == LogTransform::log ? std::exp(value) : std::expm1(value);
}

// A change of the numbers of an input's columns that was fitted on the training split:
// stored = (log(original) - shift) / scale.
struct Standardization {
  std::string input;
  std::vector<double> shift, scale;       // one entry a column
  LogTransform log = LogTransform::none;  // of all columns
};

// Other numbers that were fitted to the training split, by what they are of: "age:mean" of a column, "x:aggregate.0 of
// a - mean(a)" of a formula.
struct FittedStatistic {
  std::string name;
  std::vector<double> values;
};

// One part of the data: for each input a tensor whose dimension 0 counts the samples.
struct Split {
  std::string name;  // "train", "validation", "test"
  std::vector<std::pair<std::string, HostTensor>> columns;
  std::int64_t declared = 0;               // samples when the columns were not read (LoadOptions::data)
  std::vector<std::string> original = {};  // columns in original units, which a Session changes as "transform" says
  bool rows_vary = false;  // Session::set_rows() may say how many are in use: the columns are their room
  std::int64_t samples() const { return columns.empty() ? declared : columns.front().second.shape()[0]; }
};

// The columns of the source that an input lists, as a program gives them side by side.
struct InputColumns {
  std::string input;
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> words;  // by column: of its classes, where it is made of some that are known
};

namespace data {
class ArrayRows;
}

struct DataSet {
  std::vector<Split> splits;
  std::vector<Standardization> standardizations;
  std::vector<std::string> warnings;
  std::vector<FittedStatistic> fitted;
  std::string provenance;  // JSON that weights files keep: the columns, the split and its seed
  // Of data read with LoadOptions::weights: why the splits are not those of the training; empty when they are.
  std::string split_mismatch;
  // The words of its classes, for each target that is made of words (data.md); known with weights too.
  std::vector<std::pair<std::string, std::vector<std::string>>> labels;
  std::vector<std::string> files;  // that were opened for it
  std::vector<InputColumns> columns;
  std::shared_ptr<const data::ArrayRows> arrays;  // changes rows that a program gives; null: there is no "data" section
  const Split* find(std::string_view split) const {
    for (const Split& s : splits) {
      if (s.name == split) return &s;
    }
    return nullptr;
  }
};

// A scalar of the graph, or one of the built-in names (ops.md, "Metrics") applied to each (output, target). A
// scalar of such a name has to be what the name says.
struct MetricSpec {
  std::string name;
  Value value;  // not valid: the built-in of that name
};

// A number that changes over training: model-format.md, "Schedules".
struct ScheduleSpec {
  std::string name;     // "cosine"
  AttrList attributes;  // from, to, and one of steps or epochs; warmup
};

struct OptimizerSpec {
  std::string name = "sgd";
  std::vector<std::pair<std::string, double>> attributes = {{"lr", 0.01}};
  std::optional<ScheduleSpec> lr;  // set: used in place of the attribute lr, which then only has to be there
  // Attributes that the host may change between steps: each is a state, "train:lr", that starts from its value above.
  std::vector<std::string> runtime = {};
};

struct OutputSpec {
  Value value;
  std::string name;
  std::string target;  // the input it answers; may be empty
};

// A figure of the split `validation` that a training goes by, and when it counts as better.
struct Monitor {
  enum class Mode : std::uint8_t { automatic, min, max };  // automatic: what is better of a built-in metric
  std::string monitor = "loss";                            // or a metric, as it is told
  Mode mode = Mode::automatic;
  std::int64_t patience = 10;  // so many evaluations in a row without a better one are too many
  double min_delta = 0;        // better by no more than this is not better
};

// Ends the training after `patience` evaluations in a row without a better one.
struct EarlyStopping : Monitor {
  bool restore_best = true;  // in the end the parameters are those of the best evaluation
};

// Multiplies the learning rate, or what its schedule gives, by `factor` after `patience` evaluations in a row without a
// better one.
struct LrPlateau : Monitor {
  double factor = 0.1;
  std::int64_t cooldown = 0;  // evaluations after that which do not count
  double min_factor = 0;      // the product of all of them stays at least this
};

// One of several losses, with the parameters that it alone moves. An objective sees the parameters of those before it
// as they have just left them, and no gradient goes through their updates.
struct ObjectiveSpec {
  std::string name;  // its loss is told under this name, like a metric
  Value minimize;
  std::vector<Value> parameters;
  OptimizerSpec optimizer;
  std::int64_t every = 1;  // it moves them in every so manyth step: a critic's steps to one of its generator
};
inline constexpr std::int64_t kMaxEvery = std::int64_t{1} << 24;

struct TrainSpec {
  Value minimize;  // by all parameters that are trained, with `optimizer`
  std::vector<MetricSpec> metrics;
  OptimizerSpec optimizer;
  // In the order in which a step takes them, instead of `minimize` and `optimizer`; the loss of the model is their sum.
  std::vector<ObjectiveSpec> objectives;
  double clip_norm = 0;  // gradients are scaled down to this norm over all parameters of an objective; 0: not at all
  bool clip_norm_at_run_time = false;  // it is a state, "train:clip_norm", that starts from this
  std::int64_t epochs = 1;
  std::uint64_t seed = 0;
  bool shuffle = false;                   // training rows in another order each epoch
  bool drop_last = false;                 // leave out a last batch that is not full
  Precision precision = Precision::fp32;  // of products, in every phase
  MathMode math = MathMode::fast;         // on a device, in regions over rows
  // Of `validation`, in epochs or in steps, one of them. Both 0: after the last epoch only, or after each one where the
  // two below go by it.
  std::int64_t evaluate_every = 0, evaluate_every_steps = 0;
  std::optional<EarlyStopping> early_stopping;
  std::optional<LrPlateau> lr_plateau;
  std::int64_t log_every = 0;    // epochs; 0: such that at most 200 reports are made
  std::uint64_t max_memory = 0;  // bytes that a plan may take; 0: as many as it needs
  bool largest_batch = false;    // the batch is the largest that fits, of up to the builder's
};

struct Model {
  explicit Model(GraphBuilder builder) : graph(std::move(builder)) {}
  std::string name;
  std::string file;  // that it was read from; empty when it was built
  // Says that file as canonical_model() does, overrides included, for weights to keep. Empty: it was built. The text
  // is empty where it would have more than 16 MiB.
  std::function<std::string()> canonical;
  GraphBuilder graph;
  std::vector<OutputSpec> outputs;
  TrainSpec train;
  DataSet data;
};

// What is under way, and how much of it is done, from 0 to 1; below 0: not known. Called often, in the thread that
// called the library: it has to be quick.
using OnProgress = std::function<void(std::string_view what, double done)>;

// What load_model() asks of the data.
enum class DataUse {
  values,  // all of it
  sizes,   // how many samples there are: files are opened only where the model does not say. Enough for plan_program()
  // No file is opened; a split whose size the model does not say is left out. A batch "all" is then not known: with
  // weights, and where no output depends on the other rows of its batch, it is 1024, to predict with.
  none,
  // As `none`, and without the splits whose sizes the model says: the program gives its own, or predicts. A batch "all"
  // is all rows of what it gives.
  given,
};

struct LoadOptions {
  std::string data_dir;                                        // searched after the model's own folder
  std::vector<std::pair<std::string, std::string>> overrides;  // "train.epochs" -> "100", as --set gives them
  DataUse data = DataUse::values;
  // A file of weights.h to start from: parameters, the numbers the data are changed with, and the seed of their split.
  std::string weights = {};
  // Above 0: the model is loaded to predict so many rows. No split is read, and the batch follows from the model; it is
  // that of the training where an output depends on the other rows of its batch (data.md).
  std::int64_t predicts = 0;
  // A file of labelled rows to evaluate in place of the model's own data: the one split is then "data". `weights` have
  // what was fitted. `format` as in InputOptions.
  std::string evaluates = {}, format = {};
  // When set, the first call keeps the model file's bytes here and the next ones take it: a pipe is read once only.
  std::shared_ptr<std::optional<std::string>> text = {};
  std::shared_ptr<std::optional<std::string>> piped_weights = {};  // the same of `weights`, where that is a pipe
  OnProgress on_progress = {};                                     // of reading the data
};

// `path` is a model file, or a safetensors file of weights with its model inside (weights.h): then LoadOptions::weights
// is that file, too, unless it names another.
GRAPHRUN_API Model load_model(const std::string& path, const LoadOptions& options = {});

// Changes the columns of Split::original as "transform" says, fitted to the split "train" unless the numbers came with
// weights or with data that were read. A Session does it to the model that it is given. Throws Error.
GRAPHRUN_API void change_original(Model& model);

// Whether `model` is such a file of weights.
GRAPHRUN_API bool is_weights(const std::string& model, const LoadOptions& options = {});

// How a file of rows is read.
struct InputOptions {
  std::string format = {};             // "csv", "json", "npy", "npz" or "idx"; empty: the file tells (data.md)
  std::vector<std::string> keep = {};  // columns whose texts are wanted beside the inputs
};

struct InputRows {
  std::vector<std::pair<std::string, HostTensor>> inputs;  // for Session::predict()
  std::vector<std::vector<std::string>> kept;              // for each of InputOptions::keep: its texts, by row
  std::int64_t rows() const { return inputs.front().second.shape()[0]; }
};

// The rows of a file as the inputs of Session::predict(), in original units; f32 inputs as f64, so that nothing is
// rounded before it is standardized. Names are those of data.md, "Predictions"; what no input takes is left out.
// What was fitted to the training rows comes from LoadOptions::weights. The constructor reads the model and opens the
// file ("-" is stdin). Throws Error. Belongs to one thread at a time.
class GRAPHRUN_API InputReader {
 public:
  InputReader(const std::string& model, const std::string& path, const LoadOptions& options = {},
              const InputOptions& how = {});
  ~InputReader();
  InputReader(InputReader&&) noexcept;
  InputReader& operator=(InputReader&&) noexcept;

  // All rows of a file; of a pipe of CSV or JSON Lines those that have come since, for which it waits; nothing at the
  // end. Rows of a model whose outputs depend on other rows come at once.
  std::optional<InputRows> next();
  bool streams() const;  // whether there may be several

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All rows at once.
GRAPHRUN_API std::vector<std::pair<std::string, HostTensor>> load_inputs(const std::string& model,
                                                                         const std::string& path,
                                                                         const LoadOptions& options = {});

}  // namespace graphrun
