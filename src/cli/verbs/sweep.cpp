// sweep.cpp: the verb `sweep`: trains a model with many settings and seeds, and tabulates the results.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>

#include "base/at_once.h"
#include "base/file.h"
#include "base/host_memory.h"
#include "base/json.h"
#include "cli/command_line/verbs.h"
#include "cli/stored_runs/jobs.h"
#include "cli/stored_runs/rank_jobs.h"
#include "cli/stored_runs/run_table.h"
#include "cli/stored_runs/sweep_plan.h"
#include "cli/stored_runs/sweep_table.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/terminal.h"
#include "cli/training/ranks.h"
#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "graphrun/output_file.h"
#include "graphrun/run_folder.h"
#include "graphrun/show.h"

namespace graphrun::cli {
namespace {

using Plan = SweepPlan;
using Trial = SweepPlan::Trial;

// Number of folds in the model, for --folds.
std::int64_t folds_of(const Arguments& arguments) {
  const json::Document model = json::parse(arguments.model, canonical_model(arguments.model, arguments.load));
  const json::Member *data = model.root.find("data"), *folds = data ? data->value.find("folds") : nullptr;
  if (folds == nullptr)
    throw Error(ErrorKind::input, "sweep.folds", fmt::format("--folds: '{}' has no folds in data", arguments.model),
                R"(replace its split with "folds": {"k": 5, "fold": 0})");
  return folds->value.find("k")->value.integer;
}

std::int64_t epochs_of(const Arguments& arguments) {
  const json::Document model = json::parse(arguments.model, canonical_model(arguments.model, arguments.load));
  return model.root.find("train")->value.find("epochs")->value.integer;
}

// Seeds vary only the training: the first seed also splits the rows of all runs, unless the model sets split_seed.
std::optional<std::uint64_t> split_seed_of(const Arguments& arguments, const Plan& plan, std::uint64_t first_seed) {
  const bool varied =
      std::any_of(plan.axes.begin(), plan.axes.end(), [](const Axis& axis) { return axis.path == "data.split_seed"; });
  if (arguments.seeds < 2 || varied || !arguments.load.weights.empty()) return std::nullopt;
  if (canonical_model(arguments.model, arguments.load).find("\"split_seed\":") != std::string::npos)
    return std::nullopt;
  LoadOptions load = arguments.load;
  load.overrides.emplace_back("data.split_seed", std::to_string(first_seed));
  try {
    (void)canonical_model(arguments.model, load);
  } catch (const Error&) {  // the model does not split its rows
    return std::nullopt;
  }
  return first_seed;
}

Plan plan_of(const Arguments& arguments, std::uint64_t first_seed) {
  Plan plan;
  for (const std::string& over : arguments.over) {
    plan.axes.push_back(axis_of(over));
    for (std::size_t i = 0; i + 1 < plan.axes.size(); ++i) {
      if (plan.axes[i].path == plan.axes.back().path)
        throw Error(ErrorKind::input, "sweep.over", fmt::format("--over names '{}' twice", plan.axes[i].path));
    }
    if (plan.axes.back().path == "train.seed")
      throw Error(ErrorKind::input, "sweep.over", "--seeds N varies the seed, not --over");
    if (plan.axes.back().path == "data.folds.fold" && arguments.folds)
      throw Error(ErrorKind::input, "sweep.over", "--folds already trains each fold");
  }
  plan.settings = settings_of(plan.axes);
  if (arguments.folds) plan.folds = folds_of(arguments);
  for (std::size_t s = 0; s < plan.settings.size(); ++s)
    for (int seed = 0; seed < arguments.seeds; ++seed)
      for (std::int64_t fold = 0; fold < std::max<std::int64_t>(plan.folds, 1); ++fold)
        plan.trials.push_back(
            {s, first_seed + static_cast<std::uint64_t>(seed), fold, fmt::format("{:04}", plan.trials.size() + 1)});
  plan.split_seed = split_seed_of(arguments, plan, first_seed);
  if (arguments.halving > 0) {
    const auto varies = [&](const char* path) {
      return std::ranges::find(plan.axes, path, &Axis::path) != plan.axes.end();
    };
    if (plan.settings.size() < 2 || varies("train.epochs"))
      throw Error(ErrorKind::input, "sweep.halving", "--halving needs at least two settings, with equal epochs",
                  "--over PATH=VALUES names them");
    plan.rungs = rungs_of(plan.settings.size(), epochs_of(arguments), static_cast<std::size_t>(arguments.halving));
    plan.rung_of.assign(plan.settings.size(), 1);
  }
  return plan;
}

std::string text_of(const Plan& plan, std::size_t setting) {
  std::string text;
  for (std::size_t a = 0; a < plan.axes.size(); ++a)
    text += fmt::format(" {}={}", plan.axes[a].path, plan.settings[setting][a]);
  return text;
}

// Everything that determines the results. All runs of a folder must have the same identity.
std::string identity(const Arguments& arguments, const Plan& plan) {
  JsonWriter json;
  json.begin_object().member("over", arguments.over).member("seeds", arguments.seeds);
  std::vector<std::string> flags;
  for (const std::string& flag : arguments.passed_on) {
    if (!flag.starts_with("--threads")) flags.push_back(flag);
  }
  json.member("flags", flags).member("runs", plan.trials.size());
  if (plan.split_seed) json.member("split_seed", *plan.split_seed);
  if (plan.folds > 0) json.member("folds", plan.folds);
  if (arguments.halving > 0) json.member("halving", arguments.halving);
  json.member("model", canonical_model(arguments.model, arguments.load));
  return json.end_object().text() + "\n";
}

LoadOptions options_of(const Arguments& arguments, const Plan& plan, const GridPoint& setting) {
  LoadOptions load = arguments.load;
  for (std::size_t a = 0; a < plan.axes.size(); ++a) load.overrides.emplace_back(plan.axes[a].path, setting[a]);
  return load;
}

// Reports errors once, before any training.
void check_settings(const Arguments& arguments, const Plan& plan) {
  try {
    for (const GridPoint& setting : plan.settings)
      (void)canonical_model(arguments.model, options_of(arguments, plan, setting));
  } catch (const Error& error) {
    std::vector<Diagnostic> all = error.diagnostics();
    for (Diagnostic& one : all) {
      for (const Axis& axis : plan.axes)
        if (one.file.starts_with(fmt::format("--set {}=", axis.path))) one.file.replace(0, 5, "--over");
    }
    throw Error(error.kind(), std::move(all), error.more());
  }
}

std::string sweep_file(const Arguments& arguments) {
  return (std::filesystem::path(arguments.run_dir) / "sweep.json").string();
}

// Identifies the folder of a sweep, for ranks on other machines; 0 without one.
std::int64_t folder_id(const Arguments& arguments) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(sweep_file(arguments), error);
  return error ? 0 : std::int64_t{written.time_since_epoch().count()};
}

void claim_folder(const Arguments& arguments, const Plan& plan) {
  std::error_code error;
  std::filesystem::create_directories(arguments.run_dir, error);
  if (error)
    throw Error(ErrorKind::input, "runs.folder",
                fmt::format("cannot make the folder '{}': {}", arguments.run_dir, error.message()));
  const std::string path = sweep_file(arguments), wanted = identity(arguments, plan);
  if (std::filesystem::exists(path, error)) {
    if (read_file(path) == wanted) return;
    throw Error(ErrorKind::input, "sweep.other", fmt::format("'{}' holds another sweep", arguments.run_dir),
                "its model, --over, --seeds or flags are others: give this one a folder of its own");
  }
  OutputFile file(path, "runs.write");
  file.write(wanted);
  file.commit();
}

std::string folder_of(const Arguments& arguments, const Trial& trial) {
  return (std::filesystem::path(arguments.run_dir) / trial.name).string();
}

// `epochs`: epochs of a rung; 0: all epochs.
bool is_done(const std::string& folder, std::int64_t epochs = 0) {
  if (!is_run_folder(folder)) return false;
  const RunRecord run = read_run(folder);
  if (run.state == RunRecord::State::done) return true;
  const RunRecord::Field* trained = run.find("epochs");
  return epochs > 0 && run.state == RunRecord::State::interrupted && trained != nullptr &&
         trained->number.value_or(0) >= static_cast<double>(epochs);
}

// --ranks divides the cores of this machine.
std::size_t cores_of(const Arguments& arguments) {
  return std::max<std::size_t>(1, cores() / static_cast<std::size_t>(std::max(1, arguments.ranks)));
}

// The devices of `first`, the executor `name`, if it is that of all GPUs, as executors: at most `max`. Throws Error if
// there are fewer than --gpus.
Executors gpus_of(const Arguments& arguments, const std::shared_ptr<Executor>& first, std::size_t max) {
  const std::string& name = arguments.session.executor;
  const std::size_t wanted = arguments.gpus > 0 ? static_cast<std::size_t>(arguments.gpus) : max;
  Executors gpus{first};
  std::size_t found = first->name() == "cuda" ? 1 : 0;
  if (found == 1 && wanted > 1 && name.find(':', name.rfind('/') + 1) == std::string::npos) {
    const std::vector<Device> devices = first->devices().devices;
    found = devices.size();
    for (std::size_t i = 1; i < std::min(found, wanted); ++i)
      gpus.push_back(find_executor(name + devices[i].id.substr(devices[i].id.find(':'))));
  }
  if (arguments.gpus > 0 && found < wanted)
    throw Error(ErrorKind::input, "sweep.gpus", fmt::format("--gpus={}: '{}' has {} GPUs", arguments.gpus, name, found),
                "--executor=cuda --gpus=N uses the first N GPUs that `graphrun devices` lists");
  return gpus;
}

// How many trainings fit at once, for the first and the last combination, at most `max`: on the CPU one per core, on an
// executor that shares launches as many as it runs at the speed of one on each of its GPUs, if half of the free memory
// of the host holds the data and arenas of so many. `executors`: those of the runs if they share plans and launches or
// divide several GPUs. Others train one by one: a plug-in may not support several threads.
std::size_t fitting_at_once(const Arguments& arguments, const Plan& plan, std::size_t max, Executors& executors) {
  const std::string& name = arguments.session.executor;
  const std::size_t own_cores = cores_of(arguments);
  if (arguments.gpus == 0 && (name == "auto" || (name == "cpu" && own_cores == 1))) return 1;
  const std::shared_ptr<Executor> executor = find_executor(name == "auto" ? "cpu" : name);
  std::vector<Program> programs;
  std::uint64_t bytes = 1;
  const auto fitting_on = [&](Executor& one) {
    std::size_t most = plan.trials.size();
    for (const Program& program : programs)
      most = std::min(most, name == "cpu" ? own_cores : one.share_launches(program));
    return most;
  };
  std::size_t most = 1;
  try {
    for (const GridPoint* setting : {&plan.settings.front(), &plan.settings.back()}) {
      programs.push_back(
          plan_program(load_model(arguments.model, options_of(arguments, plan, *setting)), arguments.session));
      bytes = std::max(bytes, 2 * programs.back().arena_bytes);  // the data are in the model and in the arena
    }
    most = fitting_on(*executor);
  } catch (const Error&) {  // the run with this setting reports it; the others train
    if (arguments.gpus == 0) return 1;
  }
  const bool shares = most > 1 && name != "cpu";
  Executors gpus = gpus_of(arguments, executor, name == "cpu" ? 1 : (max + most - 1) / most);
  for (std::size_t i = 1; i < gpus.size(); ++i) {
    try {
      most = std::min(most, fitting_on(*gpus[i]));
    } catch (const Error&) {  // a GPU that other programs have filled
      if (arguments.gpus > 0) throw;
      gpus.resize(i);
    }
  }
  most *= gpus.size();
  if (shares || gpus.size() > 1 || name == "cpu") executors = gpus;
  return std::clamp<std::size_t>(available_host_memory() / 2 / bytes, 1, most);
}

// Complete command line of a training.
std::vector<std::string> words_of(const Arguments& arguments, const Plan& plan, const Trial& trial,
                                  std::size_t at_once) {
  std::vector<std::string> words = {arguments.command[0], "train", arguments.model, "--quiet"};
  words.insert(words.end(), arguments.passed_on.begin(), arguments.passed_on.end());
  for (std::size_t a = 0; a < plan.axes.size(); ++a)
    words.push_back(fmt::format("--set={}={}", plan.axes[a].path, plan.settings[trial.setting][a]));
  words.push_back(fmt::format("--seed={}", trial.seed));
  if (plan.split_seed) words.push_back(fmt::format("--set=data.split_seed={}", *plan.split_seed));
  if (plan.folds > 0) words.push_back(fmt::format("--set=data.folds.fold={}", trial.fold));
  // Divides the CPU cores between the runs; results are bitwise identical for any thread count.
  if ((at_once > 1 || arguments.ranks > 1) && arguments.session.threads == 0)
    words.push_back(fmt::format("--threads={}", std::max<std::size_t>(1, cores_of(arguments) / at_once)));
  words.push_back("--run-dir=" + arguments.run_dir);
  words.push_back("--run-name=" + trial.name);
  if (!plan.rungs.empty()) {
    const std::int64_t epochs = plan.rungs[plan.rung_of[trial.setting] - 1].epochs;
    words.insert(words.end(), {"--resume", "--checkpoint-keep=1", fmt::format("--checkpoint-every={}", epochs)});
  }
  return words;
}

// Names the weights of each network of an ensemble FOLDER/0001.npz, so that FOLDER/*.npz are all of them.
void link_weights(const Arguments& arguments, const Plan& plan) {
  for (const Trial& trial : plan.trials) {
    const std::string link = folder_of(arguments, trial) + ".npz";
    std::error_code error;
    std::filesystem::remove(link, error);
    if (is_done(folder_of(arguments, trial)))
      std::filesystem::create_symlink(std::filesystem::path(trial.name) / "weights.npz", link, error);
    if (error) throw Error(ErrorKind::run, "runs.write", fmt::format("cannot write '{}': {}", link, error.message()));
  }
}

// Stored run of each trial; nothing for a trial without one.
std::vector<std::optional<RunRecord>> stored_runs(const Arguments& arguments, const Plan& plan) {
  std::vector<std::optional<RunRecord>> runs(plan.trials.size());
  std::vector<std::exception_ptr> errors(runs.size());
  const auto read = [&](std::size_t trial, const RunInCaller&) {
    const std::string folder = folder_of(arguments, plan.trials[trial]);
    try {
      if (is_run_folder(folder)) runs[trial] = read_run(folder);
    } catch (...) {
      errors[trial] = std::current_exception();
    }
  };
  run_at_once(runs.size(), cores(), read, {});
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return runs;
}

SweepSummary summary_of(const Arguments& arguments, const Plan& plan) {
  SweepSummary summary;
  summary.figures.resize(plan.settings.size());
  std::vector<RunRecord> runs;
  std::error_code ignored;
  (void)std::filesystem::directory_iterator(arguments.run_dir, ignored);  // NFS: shows the runs of other machines
  const std::vector<std::optional<RunRecord>> stored = stored_runs(arguments, plan);
  for (std::size_t i = 0; i < plan.trials.size(); ++i) {
    if (!stored[i]) continue;
    const Trial& trial = plan.trials[i];
    const RunRecord& run = *stored[i];
    const bool is_last = plan.rungs.empty() || plan.rung_of[trial.setting] == plan.rungs.size();
    if (is_last) runs.push_back(run);
    const RunRecord::Field* steps = run.find("steps");
    if (steps != nullptr) summary.figures[trial.setting].steps += steps->number.value_or(0);
    // The metrics of a setting that does not continue are those of its last rung.
    const bool done = run.state == RunRecord::State::done || (!is_last && run.state == RunRecord::State::interrupted);
    if (done) ++summary.figures[trial.setting].runs;
    for (const std::string& key : done ? listed_keys({run}) : std::vector<std::string>()) {
      if (!run.find(key)->number) continue;
      summary.figures[trial.setting].values[key].push_back(*run.find(key)->number);
      if (std::find(summary.keys.begin(), summary.keys.end(), key) == summary.keys.end()) summary.keys.push_back(key);
    }
    if (run.state != RunRecord::State::failed || steps == nullptr) continue;
    summary.figures[trial.setting].failed_after.push_back(steps->text);
    summary.any_failed = true;
  }
  for (std::size_t s = 0; s < plan.settings.size(); ++s) summary.order.push_back(s);
  const bool falling = arguments.sort.starts_with('-');
  const std::string key = arguments.sort.empty() ? "" : known_key(summary.keys, arguments.sort.substr(falling ? 1 : 0));
  const bool any_done =
      std::ranges::any_of(runs, [](const RunRecord& run) { return run.state == RunRecord::State::done; });
  if (any_done && !summary.keys.empty()) summary.comparison = compare_settings(runs, (falling ? "-" : "") + key);
  std::vector<std::string> chosen;
  for (const std::string& column : arguments.columns) chosen.push_back(known_key(summary.keys, column));
  if (!chosen.empty()) summary.keys = chosen;
  std::stable_sort(summary.order.begin(), summary.order.end(), [&](std::size_t a, std::size_t b) {
    if (!plan.rungs.empty() && plan.rung_of[a] != plan.rung_of[b]) return plan.rung_of[a] > plan.rung_of[b];
    const auto *x = summary.figures[a].find(key), *y = summary.figures[b].find(key);
    if (x == nullptr || y == nullptr) return y == nullptr && x != nullptr;
    return falling ? mean_of(*y) < mean_of(*x) : mean_of(*x) < mean_of(*y);
  });
  return summary;
}

// Epochs of a rung; 0: all epochs.
std::int64_t epochs_of_rung(const Plan& plan, std::size_t rung) {
  return rung == 0 || rung == plan.rungs.size() ? 0 : plan.rungs[rung - 1].epochs;
}

// How many of `waiting` runs to train at a time. `executors`: see fitting_at_once().
std::size_t at_once_of(const Arguments& arguments, const Plan& plan, std::size_t waiting, Executors& executors) {
  std::size_t at_once = static_cast<std::size_t>(std::max(arguments.jobs, arguments.at_once));
  const std::size_t max = at_once == 0 ? waiting : std::min(at_once, waiting);
  const std::size_t fitting = waiting > 1 && arguments.jobs == 0 ? fitting_at_once(arguments, plan, max, executors) : 1;
  if (at_once == 0) at_once = fitting;
  if (at_once == 1) executors.clear();
  return std::min(at_once, waiting);
}

// Parsed command lines, by index of their trials. Others than `jobs` stay empty.
std::vector<Arguments> trainings_of(const Arguments& arguments, const Plan& plan, const std::vector<std::size_t>& jobs,
                                    std::size_t at_once) {
  std::vector<Arguments> trainings(plan.trials.size());
  for (const std::size_t job : jobs) {
    std::vector<const char*> words;
    const std::vector<std::string> line = words_of(arguments, plan, plan.trials[job], at_once);
    for (const std::string& word : line) words.push_back(word.c_str());
    trainings[job] = parse(static_cast<int>(words.size()), words.data());
    if (!plan.rungs.empty()) trainings[job].stop_epoch = epochs_of_rung(plan, plan.rung_of[plan.trials[job].setting]);
  }
  return trainings;
}

// Trains the runs that are not done, up to the rungs of their settings. Returns the number of failed ones.
std::size_t train_missing(const Arguments& arguments, const Plan& plan, JobQueue& queue, Diagnostics& diagnostics) {
  std::vector<std::size_t> waiting;  // indices of trials
  std::size_t there = 0;
  const std::size_t rung = plan.rungs.empty() ? 0 : std::ranges::max(plan.rung_of);
  const std::int64_t epochs = epochs_of_rung(plan, rung);
  for (std::size_t i = 0; i < plan.trials.size(); ++i) {
    if (rung > 0 && plan.rung_of[plan.trials[i].setting] < rung) continue;
    if (is_done(folder_of(arguments, plan.trials[i]), epochs))
      ++there;
    else
      waiting.push_back(i);
  }
  const std::size_t all = there + waiting.size();
  if (rung > 0)
    diagnostics.note(fmt::format("rung {} of {}: {} settings, {} epochs", rung, plan.rungs.size(),
                                 plan.rungs[rung - 1].settings, plan.rungs[rung - 1].epochs));
  if (there > 0) diagnostics.note(fmt::format("{} of {} runs were there already", there, all));
  Executors executors;
  const std::size_t at_once = at_once_of(arguments, plan, waiting.size(), executors);
  if (!waiting.empty())
    diagnostics.note(fmt::format("{} runs in {}, {} at a time{}{}", waiting.size(), printable(arguments.run_dir),
                                 at_once, executors.size() > 1 ? fmt::format(" on {} GPUs", executors.size()) : "",
                                 queue.ranks() > 1 ? fmt::format(" on rank 0 of {}", queue.ranks()) : ""));
  std::size_t ended = there, failed = 0;
  const auto on_end = [&](const JobEnd& end) {
    const Trial& trial = plan.trials[end.job];
    const std::string what = fmt::format("run {},{} seed {}{}{}", trial.name, text_of(plan, trial.setting), trial.seed,
                                         plan.folds > 0 ? fmt::format(" fold {}", trial.fold) : "",
                                         end.rank > 0 ? fmt::format(" on rank {}", end.rank) : "");
    ++ended;
    if (end.code == kInterrupted && (epochs == 0 || interrupted())) return;
    if (end.code == kDone || end.code == kInterrupted)
      return diagnostics.note(fmt::format("{} of {}: {}", ended, all, what));
    ++failed;
    diagnostics.warn(
        fmt::format("{} failed with exit code {}: {}", what, end.code, end.message.substr(0, end.message.find('\n'))));
  };
  if (arguments.jobs > 0) {
    std::vector<std::vector<std::string>> lines;
    for (const std::size_t job : waiting) lines.push_back(words_of(arguments, plan, plan.trials[job], at_once));
    run_in_processes(lines, at_once, [&](JobEnd end) {
      end.job = waiting[end.job];
      on_end(end);
    });
    return failed;
  }
  const std::vector<Arguments> trainings = trainings_of(arguments, plan, waiting, at_once);
  const std::shared_ptr<void> round = queue.begin(waiting, on_end);
  run_in_threads(
      trainings, executors, at_once, [&] { return queue.take(); }, [&](const JobEnd& end) { queue.end(end); });
  return failed;
}

// Trains runs that rank 0 names.
int train_for_rank_0(const Arguments& arguments, Plan plan, const Ranks& ranks) {
  RemoteJobs jobs(ranks.pairs()[0]);
  if (folder_id(arguments) != jobs.folder())
    throw Error(ErrorKind::input, "sweep.folder", fmt::format("'{}' is not the folder of rank 0", arguments.run_dir),
                "the ranks of a sweep need --run-dir in a file system that all machines share");
  claim_folder(arguments, plan);
  std::vector<std::size_t> all(plan.trials.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  while (const std::optional<std::size_t> round = jobs.next_round()) {
    if (!plan.rungs.empty()) plan.rung_of.assign(plan.settings.size(), *round);
    Executors executors;
    const std::size_t at_once = at_once_of(arguments, plan, all.size(), executors);
    run_in_threads(
        trainings_of(arguments, plan, all, at_once), executors, at_once, [&] { return jobs.take(); },
        [&](const JobEnd& end) {
          if (!interrupted()) jobs.end(end);
        });
  }
  return interrupted() ? kInterrupted : kDone;
}

// Settings of the next rung: those with the best means, as --compare computes them, and the fewest runs that diverged.
// Empty if a run of the rung before has no result. The choice is stored, because the results of these runs are replaced
// as they continue.
std::vector<std::size_t> chosen_for(std::size_t rung, const Arguments& arguments, const Plan& plan) {
  const std::string path = (std::filesystem::path(arguments.run_dir) / fmt::format("rung-{}.json", rung)).string();
  std::vector<std::size_t> chosen;
  if (std::error_code ignored; std::filesystem::exists(path, ignored)) {
    for (const json::Value& one : json::parse(path, read_file(path)).root.items)
      chosen.push_back(static_cast<std::size_t>(one.integer));
    return chosen;
  }
  std::vector<RunRecord> runs;
  std::map<std::string, std::size_t> setting_of;
  for (const Trial& trial : plan.trials) {
    if (plan.rung_of[trial.setting] + 1 != rung) continue;
    const std::string folder = folder_of(arguments, trial);
    if (!is_run_folder(folder)) return {};
    RunRecord run = read_run(folder);
    if (run.state == RunRecord::State::unfinished) return {};
    if (run.state == RunRecord::State::failed) continue;
    run.state = RunRecord::State::done;
    runs.push_back(std::move(run));
    setting_of[folder] = trial.setting;
  }
  if (runs.empty()) return {};
  std::vector<ComparedSetting> best = compare_settings(std::move(runs), arguments.sort).settings;
  std::ranges::stable_sort(best, std::greater(), [](const ComparedSetting& one) { return one.metrics.size(); });
  for (const ComparedSetting& setting : best)
    if (chosen.size() < plan.rungs[rung - 1].settings && !setting.folders.empty())
      chosen.push_back(setting_of.at(setting.folders.front()));
  OutputFile file(path, "runs.write");
  file.write(JsonWriter().value(chosen).text() + "\n");
  file.commit();
  return chosen;
}

int run_on_rank(const Arguments& arguments, const Ranks& ranks, Diagnostics& diagnostics) {
  if (!ranks.pairs().empty() && arguments.jobs > 0)
    throw Error(ErrorKind::input, "sweep.ranks", "--jobs does not go with ranks, which train in threads",
                "--at-once sets the number of runs that each rank trains at a time");
  const std::uint64_t first_seed = seed_of(arguments.model, arguments.load);
  Plan plan = plan_of(arguments, first_seed);
  check_settings(arguments, plan);
  if (ranks.rank() != 0) return train_for_rank_0(arguments, std::move(plan), ranks);
  claim_folder(arguments, plan);
  if (plan.trials.size() == 1)
    diagnostics.note("the sweep is a single run; --over PATH=VALUES, --seeds N and --folds make several");
  std::size_t failed = 0;
  {
    JobQueue queue(ranks.pairs(), folder_id(arguments),
                   [&](std::string_view why) { diagnostics.warn(fmt::format("{}; other ranks train its runs", why)); });
    failed = train_missing(arguments, plan, queue, diagnostics);
    for (std::size_t rung = 2; rung <= plan.rungs.size() && !interrupted(); ++rung) {
      const std::vector<std::size_t> chosen = chosen_for(rung, arguments, plan);
      if (chosen.empty()) break;
      for (const std::size_t setting : chosen) plan.rung_of.at(setting) = rung;
      failed += train_missing(arguments, plan, queue, diagnostics);
    }
  }
  if (arguments.ensemble > 0) link_weights(arguments, plan);
  const SweepSummary summary = summary_of(arguments, plan);
  write_results(arguments.json  ? sweep_json(plan, summary)
                : arguments.csv ? sweep_csv(plan, summary)
                                : sweep_text(plan, summary));
  if (interrupted()) {
    diagnostics.note("interrupted: the same command resumes the sweep");
    return kInterrupted;
  }
  if (failed > 0)
    throw Error(ErrorKind::run, "sweep.failed", fmt::format("{} of {} runs failed", failed, plan.trials.size()),
                "the same command tries them again");
  return kDone;
}

int run_sweep(const Arguments& arguments, Diagnostics& diagnostics) {
  Ranks ranks(arguments, diagnostics, Ranks::Share::runs);
  try {
    return run_on_rank(arguments, ranks, diagnostics);
  } catch (const Error& error) {
    if (ranks.leave(error)) throw;
    return exit_code(error.kind());
  }
}

}  // namespace

const Verb sweep_verb = {
    "sweep",
    "",
    Positionals::model,
    "train with every combination of given settings, and compare the results",
    R"(Trains the model with every combination of the --over values, and each combination with --seeds seeds. With
--folds, it trains every fold for each combination and seed. Each run is stored in its own folder in
--run-dir, as with `train --run-dir`. sweep prints the mean and the standard deviation of the loss and the
metrics for each combination. Then it compares the combinations, as `runs --compare` does.

--halving trains all combinations for a few epochs, continues the best third of them for three times as many
epochs, and so on (successive halving). The last rung trains up to three combinations for all epochs, with the
results of an ordinary sweep. The metric is that of --sort.

All runs use the same split, so that they are comparable: that of the first seed, or of the model's
split_seed. --over data.split_seed=1:5 varies the split. --executor, --set and other training flags apply to
each run. To resume an interrupted sweep, repeat the command; it skips completed runs.

Several runs train at a time: on the CPU one per core, on each GPU as many small networks as fill it. Each
run ends with the same weights as a run on its own. Under mpirun, srun or torchrun, machines that share
--run-dir share the runs.

--json prints an array with an object for each combination. docs/reference/command-line.md lists the keys.)",
    R"(graphrun sweep model.json --over train.optimizer.adam.lr=0.1,0.01 --seeds 5
graphrun sweep folds.json --folds
graphrun sweep model.json --over graph.h.units=4:64:2x --run-dir units --sort validation.loss
graphrun runs units --compare
mpirun -n 4 graphrun sweep model.json --seeds 100
graphrun sweep model.json --over train.optimizer.adam.lr=1e-4:1:2x --halving)",
    run_sweep};

}  // namespace graphrun::cli
