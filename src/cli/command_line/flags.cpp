#include "cli/command_line/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

namespace graphrun::cli {
namespace {

// Verbs that run a model on an executor, those that at least plan what would run, and those that read one.
constexpr std::string_view kRunning = "train eval predict plan verify bench sweep";
constexpr std::string_view kPlanning = "train eval predict plan verify bench check sweep";
constexpr std::string_view kReading = "train eval predict plan verify bench show check sweep";

// The studio takes few of them: its page has the rest.
constexpr std::string_view kChoosing = "train eval predict plan verify bench show check sweep studio";
constexpr std::string_view kThreading = "train eval predict plan verify bench sweep studio";
// Those for which executors are looked for.
constexpr std::string_view kFinding = "train eval predict plan verify bench show check sweep devices studio";

// All but those that print text for a shell or for reading.
constexpr std::string_view kAnswering = "train eval predict plan verify bench show check devices sweep runs replay";

template <class T>
T number(std::string_view text, T from = std::numeric_limits<T>::lowest(), T to = std::numeric_limits<T>::max()) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && rest == end && value >= from && value <= to) return value;
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

// The library asks for its kernels' instruction set through the environment only.
void set_isa(Arguments&, std::string_view value) {
  setenv("GRAPHRUN_ISA", std::string(value).c_str(), 1);
}

// The library looks for plug-ins when an executor is asked for.
void set_plugin_path(Arguments&, std::string_view value) {
  setenv("GRAPHRUN_PLUGIN_PATH", std::string(value).c_str(), 1);
}

// The library asks for the limit where it reads, and says what is wrong with it.
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
  constexpr std::uint64_t kMostBetween = 1'000'000'000'000;
  const auto before = [&](std::string_view unit) { return value.substr(0, value.size() - unit.size()); };
  arguments.checkpoint_every = {};
  if (value.ends_with("steps"))
    arguments.checkpoint_every.steps = number<std::uint64_t>(before("steps"), 1, kMostBetween);
  else if (value.ends_with("s"))
    arguments.checkpoint_every.seconds = number<double>(before("s"), 1e-3, 1e9);
  else if (value.find_first_not_of("0123456789") != std::string_view::npos)
    throw BadValue{fmt::format("must be a number of epochs, or as in 500steps or 30s, got '{}'", value)};
  else
    arguments.checkpoint_every.epochs = number<std::uint64_t>(value, 1, kMostBetween);
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

constexpr Flag kFlags[] = {
    {"--executor", "NAME", "Running", kChoosing,
     "ref, cpu (the default), cuda, cuda:1, ./plugin.so[:1], or auto: the fastest",
     [](Arguments& a, std::string_view v) { a.session.executor = v; }, Completes::executors, "GRAPHRUN_EXECUTOR"},
    {"--plugin-path", "FOLDERS", "Running", kFinding, "of libgraphrun_NAME.so, the executors NAME; separated by colons",
     set_plugin_path, Completes::folders, "GRAPHRUN_PLUGIN_PATH"},
    {"--target", "NAME", "Running", kReading, "plan for this machine: host, h200, ...",
     [](Arguments& a, std::string_view v) { a.session.target = v; }, Completes::targets},
    {"--threads", "N", "Running", kThreading, "of the cpu executor; by default the cores it may use",
     [](Arguments& a, std::string_view v) { a.session.threads = number<int>(v, 0, 1024); }, Completes::nothing,
     "GRAPHRUN_THREADS"},
    {"--isa", "NAME", "Running", kRunning, "of the cpu executor: plain, avx2 or avx512; by default the best there is",
     set_isa, Completes::instruction_sets, "GRAPHRUN_ISA"},
    {"--math", "NAME", "Running", kReading,
     "exp, tanh, ... in regions over rows on cuda: fast (the default), exact as on cpu",
     [](Arguments& a, std::string_view v) { override_train(a, "math", v); }, Completes::math},
    {"--no-passes", "", "Running", kPlanning, "run the graph as it was built",
     [](Arguments& a, std::string_view) { a.session.passes = false; }},
    {"--no-fuse", "", "Running", kPlanning, "run step by step, without regions",
     [](Arguments& a, std::string_view) { a.session.fuse = false; }},
    {"--jit", "HOW", "Running", kPlanning, "whole steps as one kernel, on a GPU: prefer (the default), require or off",
     set_jit, Completes::jit},
    {"--tiling", "NAME", "Running", kReading,
     "of whole steps on a GPU: thread, pair, warp, block, split, or one that plan lists",
     [](Arguments& a, std::string_view v) { a.session.tiling = v; }},

    {"--set", "PATH=VALUE", "Model", kReading, "change a value of the model file; may be repeated", set_override,
     Completes::settings},
    {"--epochs", "N", "Model", kReading, "same as --set train.epochs=N",
     [](Arguments& a, std::string_view v) { override_train(a, "epochs", v); }},
    {"--batch", "N", "Model", kReading, "same as --set train.batch=N; N may be all, or max: what fits",
     [](Arguments& a, std::string_view v) { override_train(a, "batch", v); }},
    {"--max-memory", "SIZE", "Model", kReading,
     "make the plan fit, or refuse it: 512MiB, 4GiB; same as --set train.max_memory=SIZE",
     [](Arguments& a, std::string_view v) { override_train(a, "max_memory", v); }},
    {"--seed", "N", "Model", kReading, "same as --set train.seed=N",
     [](Arguments& a, std::string_view v) { override_train(a, "seed", v); }},
    {"--data-dir", "FOLDER", "Model", "train eval predict plan verify bench show check sweep plot report studio",
     "searched for data files after the model's own folder",
     [](Arguments& a, std::string_view v) { a.load.data_dir = v; }, Completes::folders, "GRAPHRUN_DATA"},
    {"--max-input", "SIZE", "Model", kReading,
     "memory that one file or table may take, as in 4G; by default half of what is free", set_max_input,
     Completes::nothing, "GRAPHRUN_MAX_INPUT"},
    {"--weights", "FILE", "Model", "train eval predict verify bench sweep plot export-c export-onnx",
     "start from the weights of this file, NPZ or safetensors",
     [](Arguments& a, std::string_view v) { a.load.weights = v; }, Completes::files},
    {"--save-weights", "FILE", "Model", "train",
     "write the trained weights: as NPZ or, named .safetensors, with their model",
     [](Arguments& a, std::string_view v) { a.save_weights = v; }, Completes::files},

    {"--target", "COLUMN", "Model", "init", "the column to predict",
     [](Arguments& a, std::string_view v) { a.column = v; }},
    {"--output", "FILE", "Model", "init", "write the model to this new file instead of stdout",
     [](Arguments& a, std::string_view v) { a.output = v; }, Completes::files, "", "-o"},
    {"--output", "FILE", "Model", "export-c export-onnx", "write to this file instead of stdout",
     [](Arguments& a, std::string_view v) { a.output = v; }, Completes::files, "", "-o"},
    {"--output", "FILE", "Model", "import-onnx", "write the model with its weights to this file, named .safetensors",
     [](Arguments& a, std::string_view v) { a.output = v; }, Completes::files, "", "-o"},
    {"--data", "FILE", "Rows", "eval", "evaluate the labelled rows of this file, or - for stdin, instead of the splits",
     [](Arguments& a, std::string_view v) { a.load.evaluates = v; }, Completes::files},
    {"--format", "NAME", "Rows", "predict eval", "of the rows: csv, json, npy, npz or idx; by default the file tells",
     set_format},
    {"--keep", "COLUMNS", "Rows", "predict", "copy these columns, as in id,name; may be repeated",
     [](Arguments& a, std::string_view v) { add_names(a.keep, v); }},
    {"--labels", "", "Rows", "predict", "print the class of each row: its word or number",
     [](Arguments& a, std::string_view) { a.labels = true; }},
    {"--probabilities", "", "Rows", "predict", "print probabilities where an output is logits",
     [](Arguments& a, std::string_view) { a.probabilities = true; }},
    {"--output", "FILE", "Rows", "predict", "write the predictions to this file instead of stdout",
     [](Arguments& a, std::string_view v) { a.output = v; }, Completes::files, "", "-o"},

    {"--against", "NAME", "Verifying", "verify", "the executor that is right, ref by default",
     [](Arguments& a, std::string_view v) { a.against = v; }, Completes::executors},
    {"--steps", "N", "Verifying", "verify", "training steps, 3 by default; for --dump 0",
     [](Arguments& a, std::string_view v) { a.steps = number<std::uint64_t>(v); }},
    {"--trajectory", "", "Verifying", "verify", "let both run freely, tell how they part",
     [](Arguments& a, std::string_view) { a.trajectory = true; }},
    {"--tolerance", "X", "Verifying", "verify", "for --trajectory: how far parameters may part",
     [](Arguments& a, std::string_view v) { a.tolerance = number<double>(v, 0.0); }},
    {"--dump", "NODE", "Verifying", "verify", "only print this value of --executor after the steps",
     [](Arguments& a, std::string_view v) { a.dump = v; }},
    {"--dump-to", "FILE", "Verifying", "verify", "for --dump: write it to this NPY file instead",
     [](Arguments& a, std::string_view v) { a.dump_to = v; }, Completes::files},

    {"--steps", "N", "Measuring", "bench", "measure so many; by default two seconds' worth",
     [](Arguments& a, std::string_view v) { a.steps = number<std::uint64_t>(v, 1, 10000000); }},
    {"--warmup", "N", "Measuring", "bench", "steps before those, the first among them; 10",
     [](Arguments& a, std::string_view v) { a.warmup = number<std::uint64_t>(v, 1); }},
    {"--idle-gap-ms", "X", "Measuring", "bench", "idle so long before each step",
     [](Arguments& a, std::string_view v) { a.idle_gap_ms = number<double>(v, 0.0, 1e7); }},
    {"--deadline-us", "X", "Measuring", "bench", "a step that takes longer than X microseconds is exit code 3",
     [](Arguments& a, std::string_view v) { a.deadline_us = number<double>(v, 0.0); }},
    {"--assert-no-alloc", "", "Measuring", "train bench", "anything allocated after the first step is exit code 3",
     [](Arguments& a, std::string_view) { a.assert_no_alloc = true; }},
    {"--certificate", "FILE", "Measuring", "train", "write what was allocated before and after the first step, as JSON",
     [](Arguments& a, std::string_view v) { a.certificate = v; }, Completes::files},

    {"--settings", "", "Showing", "show", "every PATH=VALUE that --set takes, as they are, and the words they may be",
     [](Arguments& a, std::string_view) { a.settings = true; }},
    {"--values", "", "Showing", "show", "statistics of the values over a batch, or of those named; reads the data",
     [](Arguments& a, std::string_view) { a.values = true; }},
    {"--split", "NAME", "Showing", "show", "for --values: a batch of these rows; train by default",
     [](Arguments& a, std::string_view v) { a.split = v; }},
    {"--of", "EXPRESSION", "Showing", "show", "for --values: gradients of this, not of the loss",
     [](Arguments& a, std::string_view v) { a.of = v; }},
    {"--gradients", "", "Showing", "show", "the nodes one by one, and the gradients'",
     [](Arguments& a, std::string_view) { a.gradients = true; }},
    {"--dot", "", "Showing", "show", "as a drawing for Graphviz", [](Arguments& a, std::string_view) { a.dot = true; }},
    {"--whole-step", "", "Showing", "show", "all nodes of a training step and of evaluation; reads the data",
     [](Arguments& a, std::string_view) { a.whole_step = true; }},
    {"--rows", "", "Showing", "show", "what the batch is to each value, and the regions; reads the data",
     [](Arguments& a, std::string_view) { a.rows = true; }},
    {"--weights", "FILE", "Showing", "show",
     "the arrays of this file, NPZ or safetensors; with --values a model's weights",
     [](Arguments& a, std::string_view v) { a.load.weights = v; }, Completes::files},
    {"--save-array", "FILE", "Showing", "show", "write the one array that is named: NPY, or CSV by its name",
     [](Arguments& a, std::string_view v) { a.save_array = v; }, Completes::files},
    {"--source", "", "Showing", "show", "the generated kernels of whole steps (--executor=cuda); reads the data",
     [](Arguments& a, std::string_view) { a.source = true; }},

    {"--run-dir", "FOLDER", "Runs", "train sweep",
     "keep the run there, in a folder of its own: model, log, result, weights",
     [](Arguments& a, std::string_view v) { a.run_dir = v; }, Completes::folders},
    {"--run-name", "NAME", "Runs", "train", "what that folder is called; by default it is numbered",
     [](Arguments& a, std::string_view v) { a.run_name = v; }},
    {"--run-dir", "FOLDER", "Runs", "studio", "keep runs there; by default runs, beside the model",
     [](Arguments& a, std::string_view v) { a.run_dir = v; }, Completes::folders},
    {"--port", "N", "Studio", "studio", "listen on this port; by default any that is free",
     [](Arguments& a, std::string_view v) { a.port = number<int>(v, 0, 65535); }},
    {"--no-browser", "", "Studio", "studio", "only print the address",
     [](Arguments& a, std::string_view) { a.browser = false; }},
    {"--over", "PATH=VALUES", "Runs", "sweep", "train with each: 0.1,0.01 or 4:64:2x or 1:9:+2; may be repeated",
     [](Arguments& a, std::string_view v) { a.over.emplace_back(v); }, Completes::settings},
    {"--seeds", "N", "Runs", "sweep", "train each with so many seeds, from the model's own on; 1",
     [](Arguments& a, std::string_view v) { a.seeds = number<int>(v, 1, 100000); }},
    {"--jobs", "N", "Runs", "sweep", "trainings at a time; 1",
     [](Arguments& a, std::string_view v) { a.jobs = number<int>(v, 1, 1024); }},
    {"--sort", "COLUMN", "Runs", "runs sweep", "by this column, -COLUMN: the largest first",
     [](Arguments& a, std::string_view v) { a.sort = v; }},
    {"--columns", "COLUMNS", "Runs", "runs", "show these, as in lr,test.loss",
     [](Arguments& a, std::string_view v) { add_names(a.columns, v); }},
    {"--buffers", "FILE", "Buffers", "plan", "pack the buffers of this CSV file instead; no model",
     [](Arguments& a, std::string_view v) { a.buffers = v == "-" ? "/dev/stdin" : v; }, Completes::files},
    {"--capacity", "N", "Buffers", "plan", "what they must fit in; without it, as low as can be",
     [](Arguments& a, std::string_view v) { a.capacity = number<std::uint64_t>(v); }},
    {"--time-limit", "S", "Buffers", "plan", "seconds for the search; 10 by default",
     [](Arguments& a, std::string_view v) { a.time_limit = number<double>(v, 0, 1e9); }},

    {"--csv", "", "Runs", "runs sweep", "the table as CSV", [](Arguments& a, std::string_view) { a.csv = true; }},
    {"--checkpoint-dir", "FOLDER", "Checkpoints", "train", "keep checkpoints there, from which the training can go on",
     [](Arguments& a, std::string_view v) { a.checkpoint_dir = v; }, Completes::folders},
    {"--checkpoint-every", "K", "Checkpoints", "train",
     "after K epochs, or as in 500steps or 30s; 1, but 1s beyond 200 epochs", set_checkpoint_every},
    {"--checkpoint-keep", "N", "Checkpoints", "train", "keep the newest N, and the best by the validation loss; 3",
     [](Arguments& a, std::string_view v) { a.checkpoint_keep = number<int>(v, 1, 1000000); }},
    {"--resume", "FILE|auto", "Checkpoints", "train",
     "go on from this checkpoint; auto, the default: the folder's newest",
     [](Arguments& a, std::string_view v) { a.resume = v; }, Completes::files, "", "", "auto"},
    {"--columns", "NAMES", "Drawing", "plot", "draw these, as in loss,validation_loss; may be repeated",
     [](Arguments& a, std::string_view v) { add_names(a.columns, v); }},
    {"--x", "COLUMN", "Drawing", "plot", "what they are drawn over; epoch by default",
     [](Arguments& a, std::string_view v) { a.x_column = v; }},
    {"--log", "AXES", "Drawing", "plot", "logarithmic axes: x, y or xy", set_log_axes, Completes::axes},
    {"--what", "NAME", "Drawing", "plot", "confusion, misclassified, predicted, residuals, surface, weights, histogram",
     [](Arguments& a, std::string_view v) { a.picture = v; }},
    {"--split", "NAME", "Drawing", "plot", "of a model: on these rows; by default test, validation or train",
     [](Arguments& a, std::string_view v) { a.split = v; }},
    {"--array", "NAME", "Drawing", "plot", "for weights and histogram: this parameter alone",
     [](Arguments& a, std::string_view v) { a.array = v; }},
    {"--title", "TEXT", "Drawing", "plot", "written above", [](Arguments& a, std::string_view v) { a.title = v; }},
    {"--output", "FILE", "Drawing", "plot", "write the picture to this file: .svg, .png or .txt",
     [](Arguments& a, std::string_view v) { a.output = v; }, Completes::files, "", "-o"},

    {"--json", "", "Output", kAnswering, "results as one JSON object on stdout",
     [](Arguments& a, std::string_view) { a.json = true; }},
    {"--log", "FILE", "Output", "train", "write a line for each report: CSV or, named .jsonl, JSON; may be repeated",
     [](Arguments& a, std::string_view v) { a.logs.emplace_back(v); }, Completes::files},
    {"--tensorboard", "FOLDER", "Output", "train", "write the same to a file there that TensorBoard reads",
     [](Arguments& a, std::string_view v) { a.tensorboard = v; }, Completes::folders},
    {"--hash-weights", "", "Output", "train", "a hash of the weights in each line of the logs; --run-dir has it anyway",
     [](Arguments& a, std::string_view) { a.hash_weights = true; }},
    {"--watch", "VALUE", "Output", "train", "statistics of this value of the graph in the logs; may be repeated",
     [](Arguments& a, std::string_view v) {
       std::vector<std::string>& watch = a.session.watch;
       if (std::find(watch.begin(), watch.end(), v) == watch.end()) watch.emplace_back(v);
     }},
    {"--watch-every", "N", "Output", "train", "steps between looks at --watch; by default with each report",
     [](Arguments& a, std::string_view v) { a.watch_every = number<std::uint64_t>(v, 1); }},
    {"--no-forensics", "", "Output", "train", "of a loss that is not finite name the step only; saves memory",
     [](Arguments& a, std::string_view) { a.forensics = false; }},
    {"--losses", "FILE", "Output", "train", "write the loss of every step, one a line",
     [](Arguments& a, std::string_view v) { a.losses = v; }, Completes::files},
    {"--profile", "", "Output", "train", "print where the time went: API calls, kernels, copies",
     [](Arguments& a, std::string_view) { profile(a, Profiling::on); }},
    {"--profile-trace", "FILE", "Output", "train", "--profile, and a timeline for chrome://tracing or Perfetto",
     [](Arguments& a, std::string_view v) {
       profile(a, Profiling::on);
       a.profile_trace = v;
     },
     Completes::files},
    {"--no-cupti", "", "Output", "train", "--profile, by our own clock where NVIDIA's CUPTI could be used",
     [](Arguments& a, std::string_view) { profile(a, Profiling::own_clock); }},
    {"--program", "", "Output", "plan", "print the program that executors run",
     [](Arguments& a, std::string_view) { a.program = true; }},
    {"--svg", "", "Output", "plan", "draw the plan: offsets over time, as SVG",
     [](Arguments& a, std::string_view) { a.svg = true; }},
    {"--svg", "", "Output", "show", "draw the graph, as SVG; with --whole-step, the nodes of a training step",
     [](Arguments& a, std::string_view) { a.svg = true; }},
    {"--html", "", "Output", "plan", "the plan as one page of HTML, with its picture",
     [](Arguments& a, std::string_view) { a.html = true; }},
    {"--csv", "", "Output", "plan", "lives, sizes and offsets as CSV, for other solvers",
     [](Arguments& a, std::string_view) { a.csv = true; }},
    {"--lock", "FILE", "Output", "plan", "write the plan down, for --check",
     [](Arguments& a, std::string_view v) { a.lock = v; }, Completes::files},
    {"--check", "FILE", "Output", "plan", "exit code 3 and the difference if the plan is not that of --lock",
     [](Arguments& a, std::string_view v) { a.check = v; }, Completes::files},
    {"--output", "FILE", "Output", "plan show", "write what --svg, --html, --csv or --buffers print to this file",
     [](Arguments& a, std::string_view v) { a.output = v; }, Completes::files, "", "-o"},
    {"--report", "FILE", "Output", "train eval", "write what was reached as one page of HTML",
     [](Arguments& a, std::string_view v) { a.report = v; }, Completes::files},
    {"--output", "FILE", "Output", "report", "write the page to this file; by default report.html in the run's folder",
     [](Arguments& a, std::string_view v) { a.output = v; }, Completes::files, "", "-o"},
    {"--diagnostics", "FORMAT", "Output", "", "errors and warnings on stderr as text (the default) or json",
     check_format, Completes::formats},
    {"--quiet", "", "Output", "", "no progress and no warnings", [](Arguments& a, std::string_view) { a.quiet = true; },
     Completes::nothing, "", "-q"},
    {"--verbose", "", "Output", "", "tell more: splits and plan, every buffer or op",
     [](Arguments& a, std::string_view) { a.verbose = true; }, Completes::nothing, "", "-v"},

    {"--man", "", "General", "help", "everything as the page graphrun(1), in roff",
     [](Arguments& a, std::string_view) { a.man = true; }},
    {"--help", "", "General", "", "print this, or the help of one verb, and exit",
     [](Arguments& a, std::string_view) { a.help = true; }, Completes::nothing, "", "-h"},
    {"--version", "", "General", "", "print version, build and executors, and exit",
     [](Arguments& a, std::string_view) { a.version = true; }},
};

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

}  // namespace

std::span<const Flag> flags() {
  return kFlags;
}

bool belongs(const Flag& flag, std::string_view verb) {
  return flag.verbs.empty() || has_word(flag.verbs, verb);
}

const Flag* find_flag(std::string_view name, std::string_view verb) {
  const Flag* found = nullptr;
  for (const Flag& flag : kFlags) {
    if (flag.name != name && (flag.letter.empty() || flag.letter != name)) continue;
    if (found == nullptr || belongs(flag, verb)) found = &flag;
  }
  return found;
}

}  // namespace graphrun::cli
