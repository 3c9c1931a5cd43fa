#include "cli/command_line/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>

#include "base/text.h"

namespace graphrun::cli {
namespace {

// Verbs that run a model on an executor, verbs that plan it, and verbs that read it.
constexpr std::string_view kRunning = "train eval predict plan verify bench sweep";
constexpr std::string_view kPlanning = "train eval predict plan verify bench check sweep";
constexpr std::string_view kReading = "train eval predict plan verify bench show check sweep";

// The studio has few flags: its page offers the other settings.
constexpr std::string_view kChoosing = "train eval predict plan verify bench show check sweep studio";
constexpr std::string_view kThreading = "train eval predict plan verify bench sweep studio";
// Verbs that search for executors.
constexpr std::string_view kFinding = "train eval predict plan verify bench show check sweep devices studio";

// Verbs with results in JSON.
constexpr std::string_view kAnswering = "train eval predict plan verify bench show check devices sweep runs replay";

template <class T>
T number(std::string_view text, T from = std::numeric_limits<T>::lowest(), T to = std::numeric_limits<T>::max()) {
  if (const std::optional<T> value = parse_number<T>(text); value && *value >= from && *value <= to) return *value;
  const std::string_view kind = std::is_integral_v<T> ? "a whole number" : "a number";
  const bool open = to == std::numeric_limits<T>::max();
  throw BadValue{fmt::format("must be {} {}, got '{}'", kind,
                             open ? fmt::format("from {} on", from) : fmt::format("from {} to {}", from, to), text)};
}

void override_train(Arguments& arguments, const char* key, std::string_view value) {
  arguments.load.overrides.emplace_back(fmt::format("train.{}", key), value);
}

void set_override(Arguments& arguments, std::string_view value) {
  const std::size_t equals = value.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw BadValue{fmt::format("takes PATH=VALUE, as in train.epochs=5, got '{}'", value)};
  }
  arguments.load.overrides.emplace_back(value.substr(0, equals), value.substr(equals + 1));
}

// The library reads the instruction set of its kernels from the environment only.
void set_isa(Arguments&, std::string_view value) {
  setenv("GRAPHRUN_ISA", std::string(value).c_str(), 1);
}

// The library searches for plug-ins when it looks up an executor.
void set_plugin_path(Arguments&, std::string_view value) {
  setenv("GRAPHRUN_PLUGIN_PATH", std::string(value).c_str(), 1);
}

// The library reads the limit with each file, and reports an invalid one.
void set_max_input(Arguments&, std::string_view value) {
  setenv("GRAPHRUN_MAX_INPUT", std::string(value).c_str(), 1);
}

void set_format(Arguments& arguments, std::string_view value) {
  for (const std::string_view known : {"csv", "json", "npy", "npz", "idx"}) {
    if (value == known) arguments.load.format = value;
  }
  if (arguments.load.format != value)
    throw BadValue{fmt::format("must be csv, json, npy, npz or idx, got '{}'", value)};
}

void add_names(std::vector<std::string>& names, std::string_view value) {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    names.emplace_back(value.substr(0, comma));
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
}

void set_log_axes(Arguments& arguments, std::string_view value) {
  if (value != "x" && value != "y" && value != "xy") throw BadValue{fmt::format("must be x, y or xy, got '{}'", value)};
  arguments.log_axes = value;
}

void check_format(Arguments&, std::string_view value) {
  if (value != "text" && value != "json") throw BadValue{fmt::format("must be text or json, got '{}'", value)};
}

// "5" epochs, "500steps", "30s".
void set_checkpoint_every(Arguments& arguments, std::string_view value) {
  constexpr std::uint64_t kMaxInterval = 1'000'000'000'000;
  const auto before = [&](std::string_view unit) { return value.substr(0, value.size() - unit.size()); };
  arguments.checkpoint_every = {};
  if (value.ends_with("steps"))
    arguments.checkpoint_every.steps = number<std::uint64_t>(before("steps"), 1, kMaxInterval);
  else if (value.ends_with("s"))
    arguments.checkpoint_every.seconds = number<double>(before("s"), 1e-3, 1e9);
  else if (value.find_first_not_of("0123456789") != std::string_view::npos)
    throw BadValue{fmt::format("must be a number of epochs, or as in 500steps or 30s, got '{}'", value)};
  else
    arguments.checkpoint_every.epochs = number<std::uint64_t>(value, 1, kMaxInterval);
}

void set_jit(Arguments& arguments, std::string_view value) {
  if (value != "prefer" && value != "require" && value != "off")
    throw BadValue{fmt::format("must be prefer, require or off, got '{}'", value)};
  arguments.session.jit = value == "off" ? Jit::off : value == "require" ? Jit::require : Jit::prefer;
}

void profile(Arguments& arguments, Profiling how) {
  Profiling& now = arguments.session.profiling;
  if (now != Profiling::own_clock) now = how;
}

void set_threshold(Arguments& arguments, std::string_view value) {
  arguments.threshold = ThresholdRule{};
  if (value == "f1") return;
  const std::optional<double> at = parse_number<double>(value);
  if (!at || !(*at >= 0 && *at <= 1))
    throw BadValue{fmt::format("must be f1 or a number from 0 to 1, got '{}'", value)};
  arguments.threshold->by = ThresholdRule::By::value;
  arguments.threshold->at = *at;
}

template <auto... kMembers>
void set(Arguments& arguments, std::string_view value) {
  (arguments.*....*kMembers) = value;
}

template <auto... kMembers>
void on(Arguments& arguments, std::string_view) {
  (arguments.*....*kMembers) = true;
}

// The other verbs use the last file.
void add_weights(Arguments& arguments, std::string_view value) {
  if (arguments.verb == "predict" && !arguments.load.weights.empty())
    arguments.more_weights.emplace_back(value);
  else
    arguments.load.weights = value;
}

constexpr Flag kFlags[] = {
    {"--set", "PATH=VALUE", "Model", kReading, "override a value of the model file; may be repeated", set_override,
     Completes::settings},
    {"--epochs", "N", "Model", kReading, "number of epochs; same as --set train.epochs=N",
     [](Arguments& a, std::string_view v) { override_train(a, "epochs", v); }},
    {"--batch", "N", "Model", kReading, "batch size, all, or max (the largest that fits); same as --set train.batch=N",
     [](Arguments& a, std::string_view v) { override_train(a, "batch", v); }},
    {"--seed", "N", "Model", kReading, "random seed; same as --set train.seed=N",
     [](Arguments& a, std::string_view v) { override_train(a, "seed", v); }},
    {"--shards", "N", "Model", kReading, "parts of a batch that ranks share; same as --set train.shards=N",
     [](Arguments& a, std::string_view v) { override_train(a, "shards", v); }},
    {"--max-memory", "SIZE", "Model", kReading,
     "memory limit of the plan, as in 512M or 4GiB; same as --set train.max_memory=SIZE",
     [](Arguments& a, std::string_view v) { override_train(a, "max_memory", v); }},
    {"--weights", "FILE", "Model", "train eval predict verify bench show sweep plot export-c export-onnx",
     "read weights from this NPZ or safetensors file; predict takes several", add_weights, Completes::files},
    {"--save-weights", "FILE", "Model", "train",
     "write trained weights as NPZ (FILE.safetensors: with the model inside)", set<&Arguments::save_weights>,
     Completes::files},
    {"--data-dir", "FOLDER", "Model", "train eval predict plan verify bench show check sweep plot report studio",
     "folder to search for data files, after the model's own folder",
     [](Arguments& a, std::string_view v) { a.load.data_dir = v; }, Completes::folders, "GRAPHRUN_DATA"},
    {"--max-input", "SIZE", "Model", kReading,
     "largest data file to read, as in 512M or 4GiB (default: half of the free memory)", set_max_input,
     Completes::nothing, "GRAPHRUN_MAX_INPUT"},

    {"--label", "COLUMN", "Data", "init", "column to predict (required for a table)", set<&Arguments::column>},
    {"--window", "N", "Data", "init", "predict a row from the N rows before it (default: from its other columns)",
     [](Arguments& a, std::string_view v) { a.window = number<std::int64_t>(v, 1, 1000000); }},
    {"--no-header", "", "Data", "init", "the first line is a row; name the columns c0, c1, ...",
     [](Arguments& a, std::string_view) { a.has_header = false; }},
    {"--data", "FILE", "Data", "eval", "evaluate the rows of this file, or of stdin (-), instead of the splits",
     [](Arguments& a, std::string_view v) { a.load.evaluates = v; }, Completes::files},
    {"--format", "NAME", "Data", "predict eval",
     "format of the data file: csv, json, npy, npz or idx (default: detected)", set_format},
    {"--threshold", "VALUE|f1", "Data", "eval",
     "predict a class from this probability on, or from the one with the best F1", set_threshold},
    {"--count-unseen", "", "Data", "eval", "count rows of classes that training did not have as misses",
     [](Arguments& a, std::string_view) { a.load.accepts_unseen = true; }},
    {"--coefficients", "", "Data", "eval", "print the coefficients of a linear model, in original units",
     on<&Arguments::coefficients>},
    {"--intervals", "", "Data", "train eval", "print 95 % confidence intervals of parameters fitted by least squares",
     on<&Arguments::intervals>},
    {"--importance", "METRIC", "Data", "eval", "print how much worse this metric becomes if a column is shuffled",
     set<&Arguments::importance>},
    {"--grid", "AXES", "Data", "predict", "predict a grid instead of a file: u=-3:3:40,v=0:1:11 (first, last, points)",
     [](Arguments& a, std::string_view v) { add_names(a.grid, v); }},
    {"--keep", "COLUMNS", "Data", "predict", "copy these columns to the output, as in id,name; may be repeated",
     [](Arguments& a, std::string_view v) { add_names(a.keep, v); }},
    {"--labels", "", "Data", "predict", "also print the class index, if classes have no names", on<&Arguments::labels>},
    {"--probabilities", "", "Data", "predict", "print probabilities instead of logits", on<&Arguments::probabilities>},
    {"--split", "NAME", "Data", "show plot",
     "split to read (default: {show: train; plot: the first of test, validation, train})", set<&Arguments::split>},

    {"--against", "NAME", "Verification", "verify", "executor to compare with (default: ref)",
     set<&Arguments::verify, &Arguments::Verify::against>, Completes::executors},
    {"--trajectory", "", "Verification", "verify",
     "run each executor on its own, and report how the parameters diverge",
     on<&Arguments::verify, &Arguments::Verify::trajectory>},
    {"--tolerance", "X", "Verification", "verify",
     "with --trajectory: largest difference allowed in a parameter (default: no limit)",
     [](Arguments& a, std::string_view v) { a.verify.tolerance = number<double>(v, 0.0); }},
    {"--dump", "VALUE", "Verification", "verify", "print this value as computed by --executor, without a comparison",
     set<&Arguments::verify, &Arguments::Verify::dump>},
    {"--dump-to", "FILE", "Verification", "verify", "with --dump: write the value to this NPY file",
     set<&Arguments::verify, &Arguments::Verify::dump_to>, Completes::files},

    {"--settings", "", "Graph", "show", "print every PATH=VALUE that --set accepts, with current values and choices",
     on<&Arguments::show, &Arguments::Show::settings>},
    {"--gradients", "", "Graph", "show",
     "print every node and the gradient nodes; with --values, the gradients of the loss",
     on<&Arguments::show, &Arguments::Show::gradients>},
    {"--whole-step", "", "Graph", "show", "print all nodes of a training step and of evaluation; reads the data",
     on<&Arguments::show, &Arguments::Show::whole_step>},
    {"--rows", "", "Graph", "show", "print how each value depends on the batch, and the fused regions; reads the data",
     on<&Arguments::show, &Arguments::Show::rows>},
    {"--source", "", "Graph", "show", "print generated step kernels (needs --executor=cuda); reads the data",
     on<&Arguments::show, &Arguments::Show::source>},
    {"--dot", "", "Graph", "show", "print the graph in the DOT language of Graphviz",
     on<&Arguments::show, &Arguments::Show::dot>},
    {"--values", "", "Graph", "show",
     "print statistics of all values, or of named ones, over one batch; reads the data",
     on<&Arguments::show, &Arguments::Show::values>},
    {"--of", "EXPRESSION", "Graph", "show", "with --values: expression to differentiate (default: the loss)",
     set<&Arguments::show, &Arguments::Show::of>},
    {"--save-array", "FILE", "Graph", "show", "write the named array to this file as NPY, or as CSV if named .csv",
     set<&Arguments::show, &Arguments::Show::save_array>, Completes::files},

    {"--lock", "FILE", "Plan", "plan", "write a snapshot of the plan, for --check",
     set<&Arguments::plan, &Arguments::Plan::lock>, Completes::files},
    {"--check", "FILE", "Plan", "plan", "compare the plan with this snapshot; exit with code 3 if they differ",
     set<&Arguments::plan, &Arguments::Plan::check>, Completes::files},
    {"--buffers", "FILE", "Plan", "plan", "pack the buffers of this CSV file, without a model; - for stdin",
     [](Arguments& a, std::string_view v) { a.plan.buffers = v == "-" ? "/dev/stdin" : v; }, Completes::files},
    {"--capacity", "N", "Plan", "plan",
     "with --buffers: size limit, in the file's unit (default: as small as possible)",
     [](Arguments& a, std::string_view v) { a.plan.capacity = number<std::uint64_t>(v); }},
    {"--time-limit", "SECONDS", "Plan", "plan", "with --buffers: stop the search after this time (default: 10)",
     [](Arguments& a, std::string_view v) { a.plan.time_limit = number<double>(v, 0, 1e9); }},

    {"--over", "PATH=VALUES", "Runs", "sweep", "values to try, as in 0.1,0.01 or 4:64:2x or 1:9:+2; may be repeated",
     [](Arguments& a, std::string_view v) { a.over.emplace_back(v); }, Completes::settings},
    {"--seeds", "N", "Runs", "sweep", "number of seeds per combination, starting at the model's seed (default: 1)",
     [](Arguments& a, std::string_view v) { a.seeds = number<int>(v, 1, 100000); }},
    {"--folds", "", "Runs", "sweep", "train each fold of the model's data.folds", on<&Arguments::folds>},
    {"--ensemble", "N", "Runs", "train", "train N networks that differ in their seed, to the folder -o FOLDER",
     [](Arguments& a, std::string_view v) { a.ensemble = number<int>(v, 2, 1000); }},
    {"--halving", "K", "Runs", "sweep", "continue only the best 1/K of the settings after each rung (without =K: 3)",
     [](Arguments& a, std::string_view v) { a.halving = number<int>(v, 2, 100); }, Completes::nothing, "", "", "3"},
    {"--at-once", "N|auto", "Runs", "train plan sweep",
     "number of runs to train at a time {(default: auto, as many as fit the device); plan: (default: none)}",
     [](Arguments& a, std::string_view v) { a.at_once = v == "auto" ? 0 : number<int>(v, 1, 4096); }},
    {"--jobs", "N", "Runs", "sweep", "train N runs at a time, each in its own process",
     [](Arguments& a, std::string_view v) { a.jobs = number<int>(v, 1, 1024); }},
    {"--sort", "COLUMN", "Runs", "runs sweep plot report",
     "sort and compare by this column (-COLUMN: in descending order)", set<&Arguments::sort>},
    {"--compare", "", "Runs", "runs", "compare settings by the metric of --sort (default: validation.loss)",
     on<&Arguments::compare>},
    {"--run-dir", "FOLDER", "Runs", "train sweep studio",
     "store each run in a new subfolder (default: {train: none; sweep: MODEL-sweep; studio: runs, next to the model})",
     set<&Arguments::run_dir>, Completes::folders},
    {"--run-name", "NAME", "Runs", "train", "name of the run's folder (default: a number)", set<&Arguments::run_name>},

    {"--checkpoint-dir", "FOLDER", "Checkpoints", "train", "write checkpoints to this folder, for --resume",
     set<&Arguments::checkpoint_dir>, Completes::folders},
    {"--checkpoint-every", "K", "Checkpoints", "train",
     "interval: 5 (epochs), 500steps or 30s (default: 1, or 1s if epochs > 200)", set_checkpoint_every},
    {"--checkpoint-keep", "N", "Checkpoints", "train",
     "number of newest checkpoints to keep, in addition to the best (default: 3)",
     [](Arguments& a, std::string_view v) { a.checkpoint_keep = number<int>(v, 1, 1000000); }},
    {"--resume", "FILE|auto", "Checkpoints", "train",
     "resume from this checkpoint (without =FILE: auto, the newest in the folder)", set<&Arguments::resume>,
     Completes::files, "", "", "auto"},

    {"--what", "NAME", "Plots", "plot",
     "plot: confusion, roc, pr, calibration, surface, weights, heatmap, ... (see above)", set<&Arguments::picture>},
    {"--x", "COLUMN", "Plots", "plot", "column for the x axis (default: epoch)", set<&Arguments::x_column>},
    {"--log-scale", "AXES", "Plots", "plot", "axes with a logarithmic scale: x, y or xy (default: none)", set_log_axes,
     Completes::axes},
    {"--array", "NAME", "Plots", "plot", "with --what weights or histogram: parameter to draw", set<&Arguments::array>},
    {"--title", "TEXT", "Plots", "plot", "title of the plot", set<&Arguments::title>},

    {"--log", "FILE", "Logs", "train", "write losses and metrics as CSV (JSON Lines: .jsonl, .ndjson); may be repeated",
     [](Arguments& a, std::string_view v) { a.logs.emplace_back(v); }, Completes::files},
    {"--tensorboard", "FOLDER", "Logs", "train", "write the values of --log to this folder, for TensorBoard",
     set<&Arguments::tensorboard>, Completes::folders},
    {"--hash-weights", "", "Logs", "train", "add a hash of the weights to each report (always on with --run-dir)",
     on<&Arguments::hash_weights>},
    {"--watch", "VALUE", "Logs", "train", "add statistics of this value of the graph to each report; may be repeated",
     [](Arguments& a, std::string_view v) {
       std::vector<std::string>& watch = a.session.watch;
       if (std::find(watch.begin(), watch.end(), v) == watch.end()) watch.emplace_back(v);
     }},
    {"--watch-every", "N", "Logs", "train", "interval of --watch in steps (default: at each report)",
     [](Arguments& a, std::string_view v) { a.watch_every = number<std::uint64_t>(v, 1); }},
    {"--losses", "FILE", "Logs", "train", "write the loss of every step to this file, one per line",
     set<&Arguments::losses>, Completes::files},
    {"--no-nan-trace", "", "Logs", "train", "do not trace a non-finite loss to its op (saves memory)",
     [](Arguments& a, std::string_view) { a.nan_trace = false; }},
    {"--profile", "", "Logs", "train", "print the time spent in API calls, kernels and copies",
     [](Arguments& a, std::string_view) { profile(a, Profiling::on); }},
    {"--profile-trace", "FILE", "Logs", "train", "write a timeline for chrome://tracing or Perfetto; implies --profile",
     [](Arguments& a, std::string_view v) {
       profile(a, Profiling::on);
       a.profile_trace = v;
     },
     Completes::files},
    {"--no-cupti", "", "Logs", "train", "measure GPU time with graphrun's clock, not CUPTI; implies --profile",
     [](Arguments& a, std::string_view) { profile(a, Profiling::own_clock); }},

    {"--steps", "N", "Measurement", "verify bench predict",
     "number of training steps, or of rows to forecast {(default: 3, or 0 with --dump); bench: (default: enough for 2 "
     "s); predict: (default: none)}",
     [](Arguments& a, std::string_view v) {
       a.steps = a.verb == "verify" ? number<std::uint64_t>(v) : number<std::uint64_t>(v, 1, 10000000);
     }},
    {"--warmup", "N", "Measurement", "bench", "number of steps before the measurement (default: 10)",
     [](Arguments& a, std::string_view v) { a.bench.warmup = number<std::uint64_t>(v, 1); }},
    {"--idle-gap-ms", "X", "Measurement", "bench", "idle time before each step, in milliseconds (default: 0)",
     [](Arguments& a, std::string_view v) { a.bench.idle_gap_ms = number<double>(v, 0.0, 1e7); }},
    {"--deadline-us", "X", "Measurement", "bench",
     "exit with code 3 if a step takes more than X microseconds (default: no limit)",
     [](Arguments& a, std::string_view v) { a.bench.deadline_us = number<double>(v, 0.0); }},
    {"--assert-no-alloc", "", "Measurement", "train bench",
     "exit with code 3 if memory is allocated after the first step", on<&Arguments::assert_no_alloc>},
    {"--certificate", "FILE", "Measurement", "train",
     "write allocation counts as JSON; exit with code 3 if a later step allocates memory", set<&Arguments::certificate>,
     Completes::files},

    {"--port", "N", "Server", "studio", "port to listen on (default: any free port)",
     [](Arguments& a, std::string_view v) { a.studio.port = number<int>(v, 0, 65535); }},
    {"--no-browser", "", "Server", "studio", "print the address without opening a browser",
     [](Arguments& a, std::string_view) { a.studio.browser = false; }},

    {"--output", "FILE", "Output", "init train predict plan show report plot export-c export-onnx import-onnx",
     "output file; with --ensemble, a folder {(default: stdout); train: (default: none); report: (default: report.html "
     "in the run's folder); import-onnx: (required)}",
     set<&Arguments::output>, Completes::files, "", "-o"},
    {"--columns", "NAMES", "Output", "runs sweep plot",
     "columns to print or draw, as in loss,accuracy; may be repeated (default: automatic)",
     [](Arguments& a, std::string_view v) { add_names(a.columns, v); }},
    {"--report", "FILE", "Output", "train eval", "write the results as one HTML page", set<&Arguments::report>,
     Completes::files},
    {"--svg", "", "Output", "plan show", "draw the result as SVG (as PNG with -o FILE.png)", on<&Arguments::svg>},
    {"--html", "", "Output", "plan", "write the whole plan as one HTML page, with its drawing", on<&Arguments::html>},
    {"--program", "", "Output", "plan", "print the steps of the program that executors run", on<&Arguments::program>},
    {"--json", "", "Output", kAnswering, "print results as JSON on stdout", on<&Arguments::json>},
    {"--csv", "", "Output", "plan runs sweep", "print results as CSV on stdout", on<&Arguments::csv>},
    {"--diagnostics", "FORMAT", "Output", "", "format of errors and warnings on stderr: text or json (default: text)",
     check_format, Completes::formats},
    {"--quiet", "", "Output", "", "suppress progress and warnings", on<&Arguments::quiet>, Completes::nothing, "",
     "-q"},
    {"--verbose", "", "Output", "", "print more details", on<&Arguments::verbose>, Completes::nothing, "", "-v"},

    {"--executor", "NAME", "Execution", kChoosing,
     "ref, cpu, cuda[:N], ./plugin.so[:N]; auto uses the fastest (default: cpu)",
     [](Arguments& a, std::string_view v) { a.session.executor = v; }, Completes::executors, "GRAPHRUN_EXECUTOR"},
    {"--plugin-path", "FOLDERS", "Execution", kFinding,
     "folders with executor plug-ins (libgraphrun_NAME.so), separated by colons", set_plugin_path, Completes::folders,
     "GRAPHRUN_PLUGIN_PATH"},
    {"--target", "MACHINE", "Execution", kReading,
     "plan for this machine: host, h200, ... (default: the executor's first target)",
     [](Arguments& a, std::string_view v) { a.session.target = v; }, Completes::targets},
    {"--threads", "N", "Execution", kThreading, "threads of the cpu executor (default: all available cores)",
     [](Arguments& a, std::string_view v) { a.session.threads = number<int>(v, 0, 1024); }, Completes::nothing,
     "GRAPHRUN_THREADS"},
    {"--ranks", "N", "Execution", "train sweep",
     "start N processes that share {the shards of each batch (mpi: use MPI); sweep: the runs}",
     [](Arguments& a, std::string_view v) { a.ranks = (a.mpi = v == "mpi") ? 0 : number<int>(v, 1, 256); }},
    {"--gpus", "N", "Execution", "train sweep",
     "use N GPUs {for one network, or for those of --ensemble; sweep: for the runs}",
     [](Arguments& a, std::string_view v) { a.gpus = number<int>(v, 1, 1024); }},
    {"--isa", "NAME", "Execution", kRunning,
     "instruction set of the cpu executor: plain, avx2 or avx512 (default: the widest)", set_isa,
     Completes::instruction_sets, "GRAPHRUN_ISA"},
    {"--math", "NAME", "Execution", kReading,
     "accuracy of exp, tanh and similar functions on a GPU: fast or exact (default: fast)",
     [](Arguments& a, std::string_view v) { override_train(a, "math", v); }, Completes::math},
    {"--no-passes", "", "Execution", kPlanning, "compile the graph without optimization passes",
     [](Arguments& a, std::string_view) { a.session.passes = false; }},
    {"--no-fuse", "", "Execution", kPlanning, "run each op separately, without fused regions",
     [](Arguments& a, std::string_view) { a.session.fuse = false; }},
    {"--jit", "HOW", "Execution", kPlanning,
     "fuse each training step into a GPU kernel: prefer, require or off (default: prefer)", set_jit, Completes::jit},
    {"--tiling", "NAME", "Execution", kReading,
     "tiling of step kernels: thread, pair, warp, block or split (default: automatic)",
     [](Arguments& a, std::string_view v) { a.session.tiling = v; }},

    {"--man", "", "General", "help", "print the man page graphrun(1), in roff", on<&Arguments::man>},
    {"--help", "", "General", "", "print help (for the command, if given) and exit", on<&Arguments::help>,
     Completes::nothing, "", "-h"},
    {"--version", "", "General", "", "print version, build, executors and targets, and exit", on<&Arguments::version>},
};

// Former spellings, which stay valid. Help, man page and completion omit them.
struct FormerFlag {
  std::string_view former, name;
  std::string_view verb;  // empty: every verb
};
constexpr FormerFlag kFormerFlags[] = {
    {"--log", "--log-scale", "plot"}, {"--target", "--label", "init"}, {"--no-forensics", "--no-nan-trace", ""}};

}  // namespace

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

std::span<const Flag> flags() {
  return kFlags;
}

bool belongs(const Flag& flag, std::string_view verb) {
  return flag.verbs.empty() || has_word(flag.verbs, verb);
}

std::string help_of(const Flag& flag, std::string_view verb) {
  std::string text(flag.help);
  const std::size_t open = text.find('{'), close = text.find('}');
  if (open == std::string::npos) return text;
  const std::string all = text.substr(open + 1, close - open - 1);
  std::string chosen = verb.empty() ? all : all.substr(0, all.find("; "));
  const std::string own = fmt::format("; {}: ", verb), parts = "; " + all;
  if (const std::size_t at = parts.find(own); at != std::string::npos)
    chosen = parts.substr(at + own.size(), parts.find("; ", at + own.size()) - at - own.size());
  return text.replace(open, close + 1 - open, chosen);
}

const Flag* find_flag(std::string_view name) {
  for (const Flag& flag : kFlags) {
    if (flag.name == name || (!flag.letter.empty() && flag.letter == name)) return &flag;
  }
  return nullptr;
}

std::string_view current_name(std::string_view name, std::string_view verb) {
  for (const FormerFlag& flag : kFormerFlags) {
    if (flag.former == name && (flag.verb.empty() || flag.verb == verb)) return flag.name;
  }
  return name;
}

}  // namespace graphrun::cli
