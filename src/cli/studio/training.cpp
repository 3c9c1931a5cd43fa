#include "cli/studio/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <new>

#include "base/json_writer.h"
#include "cli/command_line/diagnostics.h"
#include "cli/command_line/open.h"
#include "cli/pictures/model_pictures.h"
#include "cli/results/results.h"
#include "cli/stored_runs/hyperparameter_changes.h"
#include "cli/stored_runs/run_folder.h"
#include "cli/studio/curve_points.h"
#include "cli/studio/model.h"
#include "cli/studio/printed_command.h"
#include "cli/studio/replay.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/output_files.h"
#include "cli/training/history.h"
#include "graphrun/error.h"
#include "graphrun/profile.h"
#include "graphrun/show.h"
#include "graphrun/weights.h"

namespace graphrun::cli {
namespace {

constexpr double kBetweenMessages = 0.05;  // seconds
constexpr std::size_t kMaxFrames = 300;
constexpr double kEvaluating = 0.02;  // maximum share of the time for evaluating other splits

void write_metrics(JsonWriter& json, std::string_view name, const Metrics& metrics) {
  json.key(name).begin_object().member("loss", metrics.loss);
  for (const auto& [metric, value] : metrics.values) {
    if (metric != "loss") json.member(metric, value);
  }
  json.end_object();
}

bool holds_the_text(const Arguments& arguments) {
  try {
    return read_small_file(arguments.model) == arguments.load.text->value();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string error_json(const Error& error) {
  JsonWriter json;
  json.begin_object().member("error", std::string_view(error.what()));
  json.objects("diagnostics", error.diagnostics(),
               [&](const Diagnostic& diagnostic) { write_diagnostic(json, "error", diagnostic); });
  return json.member("more", error.more()).end_object().text();
}

struct StudioTraining::Impl {
  explicit Impl(Send how) : send(std::move(how)) {}

  Send send;

  // State for the page, shared between threads.
  mutable std::mutex mutex;
  std::string state = "idle", run, command, result = "null", error = "null", facts = "{}";
  std::string summary;                                  // results as `train` prints them
  std::vector<std::pair<std::string, double>> numbers;  // runtime hyperparameters and their current values
  std::vector<HyperparameterChange> changes;
  CurvePoints points, frames{kMaxFrames};
  double speed = 0;          // epochs per second; 0: unlimited
  std::uint64_t serial = 0;  // number of trainings and resets so far

  // Used to stop the training from other threads.
  std::mutex session_mutex;
  Session* cancellable = nullptr;
  std::atomic<bool> ends{false};

  // Used only by the training's thread.
  std::optional<Session> session;
  std::optional<Arguments> next;      // requested while another training was running
  Arguments present;                  // arguments of the latest training
  const RunFolder* folder = nullptr;  // folder of the running training
  bool trains = false, paused = false, stops = false, forgets = false;
  std::uint64_t steps_wanted = 0, steps_done = 0, steps_of_epoch = 0;
  TrainOptions options;
  std::string pending, pending_frames;  // not sent yet
  std::optional<Replay> replay;
  double due = 0;  // earliest end of the next epoch
  double sent_at = 0, began_at = 0;
  double evaluating = 0, evaluation = 0;  // seconds spent evaluating other splits: total, and fastest evaluation
  Report last = {};                       // for the curves; its pointers are not valid
  std::optional<std::string> unkept;      // reason why this run is not saved
  bool is_saved = false;                  // the model's file has the trained text
  double loss_sum = 0;
  std::uint64_t loss_count = 0, sent_step = 0;
  double sent_step_at = 0;

  studio::Worker worker;  // last member: its thread uses the others

  void set_state(std::string_view name) {
    {
      const std::lock_guard lock(mutex);
      state = name;
    }
    send("state", state_json(false));
  }

  std::string state_json(bool with_points) const {
    const std::lock_guard lock(mutex);
    JsonWriter json;
    json.begin_object().member("state", state).member("number", serial).member("run", run).member("command", command);
    json.key("facts").json(facts).key("result").json(result).key("error").json(error);
    json.key("numbers").begin_object();
    for (const auto& [name, value] : numbers) json.member(name, value);
    json.end_object().key("changes").json(changes_json(changes));
    json.member("summary", summary).member("speed", speed);
    if (with_points) {
      for (const auto& [name, list] : {std::pair("points", &points), std::pair("frames", &frames)}) {
        json.key(name).begin_array();
        for (const std::string& one : list->all()) json.json(one);
        json.end_array();
      }
    }
    return json.end_object().text();
  }

  // ---- jobs

  void begin(Arguments arguments) {
    if (trains) {
      next = std::move(arguments);
      stop();
      return;
    }
    run_one(std::move(arguments));
    while (next && !ends) {
      Arguments following = std::move(*next);
      next.reset();
      run_one(std::move(following));
    }
  }

  void stop() {
    stops = true;
    paused = false;
    if (trains && session) session->cancel();
  }

  void control(Control what) {
    if (what == Control::reset && !trains) return reset();
    if (!trains) return;
    switch (what) {
      case Control::pause:
        paused = true;
        return;
      case Control::resume:
        paused = false;
        options.step_end_every = poll_every();
        return set_state("running");
      case Control::step:
        steps_wanted = 1;
        options.step_end_every = 1;  // train() reads it before each call of the executor
        paused = false;
        return;
      case Control::reset:
        forgets = true;
        [[fallthrough]];
      case Control::stop:
        return stop();
    }
  }

  void reset() {
    forget_session();
    forget_sent();
    set_state("idle");
  }

  void forget_sent() {
    const std::lock_guard lock(mutex);
    run.clear();
    command.clear();
    points = CurvePoints();
    frames = CurvePoints(kMaxFrames);
    summary.clear();
    numbers.clear();
    changes.clear();
    result = error = "null";
    facts = "{}";
    ++serial;
  }

  void forget_session() {
    const std::lock_guard lock(session_mutex);
    cancellable = nullptr;
    session.reset();
  }

  // ---- events

  void flush(double now) {
    sent_at = now;
    for (const auto& [event, list] : {std::pair("points", &pending), std::pair("frames", &pending_frames)}) {
      if (!list->empty()) send(event, "[" + *list + "]");
      list->clear();
    }
  }

  std::uint64_t poll_every() const { return speed > 0 ? std::max<std::uint64_t>(1, steps_of_epoch) : 0; }

  void set_speed(double epochs_per_second) {
    {
      const std::lock_guard lock(mutex);
      speed = epochs_per_second;
    }
    due = 0;
    send("state", state_json(false));
  }

  // Waits until the next epoch may begin, and runs jobs meanwhile.
  void wait_for_next_epoch() {
    double now = Profiler::now();
    due = std::max(due + 1 / speed, now);
    for (; now < due && speed > 0 && !paused && !stops && !ends; now = Profiler::now()) {
      if (now - sent_at > kBetweenMessages) flush(now);
      worker.serve_for(std::min(due - now, kBetweenMessages));
    }
  }

  void add_frame(std::uint64_t step, double epoch, bool is_last) {
    if (!replay || replay->empty()) return;
    const std::lock_guard lock(mutex);
    if (!frames.wants(is_last)) return;
    const std::string frame = replay->frame(*session, step, epoch);
    frames.add(frame, step);
    pending_frames += (pending_frames.empty() ? "" : ",") + frame;
  }

  void change(std::string_view number, double value) {
    if (!trains || folder == nullptr)
      throw Error(ErrorKind::input, "studio.idle", "no training is running: change the value in the model");
    const HyperparameterChange made = change_hyperparameter(*session, steps_done, number, value);
    {
      const std::lock_guard lock(mutex);
      changes.push_back(made);
      numbers = runtime_hyperparameters(*session);
      command = run.empty() ? "" : command_line({"graphrun", "replay", run});
    }
    keep([&] { folder->write_changes(changes_json(changes)); });
    send("state", state_json(false));
  }

  void report(const Report& report) {
    last = report;
    last.validation = nullptr;
    last.objectives = {};
    last.watched = {};
    add_frame(report.step, static_cast<double>(report.epoch), report.epoch == report.epochs);
    {
      const std::lock_guard lock(mutex);
      if (!points.wants(report.epoch == report.epochs)) return;
    }
    std::optional<Metrics> validation, test;
    if (report.validation != nullptr) validation = *report.validation;
    evaluate(validation, test);
    add_point(point_json(report, static_cast<double>(report.epoch), validation, test), report.step);
    if (const double now = Profiler::now(); now - sent_at > kBetweenMessages) flush(now);
  }

  // Evaluates the splits that the training itself does not, within a small share of the time. Counts the fastest
  // evaluation, to exclude delays by other processes.
  void evaluate(std::optional<Metrics>& validation, std::optional<Metrics>& test) {
    const double now = Profiler::now();
    if (evaluating > kEvaluating * (now - began_at) || interrupted()) return;
    if (!validation && session->has_split("validation")) validation = session->evaluate("validation", 1.0);
    if (session->has_split("test")) test = session->evaluate("test", 1.0);
    const double took = Profiler::now() - now;
    evaluation = evaluation > 0 ? std::min(evaluation, took) : took;
    evaluating += evaluation;
  }

  // Adds a point for the final weights, so that all curves reach the end.
  void report_end(const Results& results, std::uint64_t steps) {
    if (steps_of_epoch > 0) add_frame(steps, static_cast<double>(steps) / static_cast<double>(steps_of_epoch), true);
    if (session->model().train.early_stopping) return;  // the final weights may be those of an earlier step
    Report at = last;
    auto epoch = static_cast<double>(at.epoch);
    if (at.step != steps) {  // stopped between two reports
      if (steps_of_epoch == 0) return;
      at.step = steps;
      at.loss = std::nan("");
      epoch = static_cast<double>(steps) / static_cast<double>(steps_of_epoch);
    }
    add_point(point_json(at, epoch, results.splits[1], results.splits[2]), steps);
    flush(Profiler::now());
  }

  static std::string point_json(const Report& report, double epoch, const std::optional<Metrics>& validation,
                                const std::optional<Metrics>& test) {
    JsonWriter json;
    json.begin_object().member("epoch", epoch).member("step", report.step);
    if (!std::isnan(report.loss)) json.member("loss", report.loss);
    json.member("seconds", report.seconds).member("steps_per_second", report.steps_per_second);
    json.member("lr_factor", report.lr_factor);
    if (validation) write_metrics(json, "validation", *validation);
    if (test) write_metrics(json, "test", *test);
    return json.end_object().text();
  }

  // Replaces the last point if it has the same step.
  void add_point(const std::string& point, std::uint64_t step) {
    {
      const std::lock_guard lock(mutex);
      points.add(point, step);
    }
    pending += (pending.empty() ? "" : ",") + point;
  }

  void progress(std::uint64_t step, double now) {
    const double rate = now > sent_step_at ? static_cast<double>(step - sent_step) / (now - sent_step_at) : 0;
    JsonWriter json;
    json.begin_object()
        .member("step", step)
        .member("epoch", static_cast<double>(step) / static_cast<double>(steps_of_epoch));
    json.member("loss", loss_count > 0 ? loss_sum / static_cast<double>(loss_count) : std::nan(""));
    json.member("steps_per_second", rate);
    std::optional<Metrics> validation, test;
    evaluate(validation, test);
    if (validation) write_metrics(json, "validation", *validation);
    if (test) write_metrics(json, "test", *test);
    json.end_object();
    loss_sum = 0;
    loss_count = 0;
    sent_step = step;
    sent_step_at = now;
    send("progress", json.text());
  }

  void on_step_end(const StepEnd& at) {
    const double now = Profiler::now();
    steps_done = at.step;
    steps_of_epoch = at.steps_of_epoch;
    if (ends) {
      session->cancel();
      return;
    }
    if (steps_wanted > 0 && --steps_wanted == 0) paused = true;
    if (!paused && now - sent_step_at > 0.2) progress(at.step, now);
    worker.serve(false);
    if (speed > 0 && !at.last && at.step % at.steps_of_epoch == 0) {
      if (at.step != last.step) add_frame(at.step, static_cast<double>(at.step / at.steps_of_epoch), false);
      wait_for_next_epoch();
    }
    if (steps_wanted == 0) options.step_end_every = poll_every();
    if (!paused || at.last) return;
    flush(now);
    progress(at.step, now);
    set_state("paused");
    while (paused && !stops && !ends) worker.serve(true);
    if (stops || ends) session->cancel();
    sent_step_at = Profiler::now();
  }

  // ---- one training, like train.cpp

  void run_one(Arguments arguments) {
    forget_session();
    forget_sent();
    paused = stops = forgets = false;
    steps_wanted = 0;
    set_state("loading");
    trains = true;
    std::string end = "failed";
    try {
      end = train(arguments);
    } catch (const Error& failure) {
      const std::lock_guard lock(mutex);
      error = error_json(failure);
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(mutex);
      error = R"({"error":"out of memory","diagnostics":[],"more":0})";
    } catch (const std::exception& bug) {
      const std::lock_guard lock(mutex);
      error = error_json(Error(ErrorKind::run, "internal", fmt::format("internal error: {}", bug.what())));
    }
    {
      const std::lock_guard lock(session_mutex);
      cancellable = nullptr;
    }
    folder = nullptr;
    trains = false;
    flush(Profiler::now());
    if (forgets) return reset();
    set_state(end);
  }

  // A run that cannot be stored (disk full, for example) is still trained.
  template <class F>
  void keep(F f) {
    if (unkept) return;
    try {
      f();
    } catch (const Error& failure) {
      unkept = failure.diagnostics().front().message;
      if (session) send_facts();
    }
  }

  void send_facts() {
    const Model& model = session->model();
    const std::string made = unkept ? "" : std::filesystem::path(present.save_weights).parent_path().string();
    auto changeable = runtime_hyperparameters(*session);
    JsonWriter json;
    json.begin_object().member("model", model.name).member("executor", session->executor());
    json.member("epochs", model.train.epochs).member("arena_bytes", session->program().arena_bytes);
    json.key("splits").begin_object();
    for (const Split& split : model.data.splits) json.member(split.name, split.samples());
    json.end_object().member("metrics", session->metric_names()).member("pictures", pictures_of(*session));
    std::vector<std::string> warnings = model.data.warnings;
    for (std::string& warning : session->training_warnings()) warnings.push_back(std::move(warning));
    if (unkept) warnings.push_back(fmt::format("this run is not saved: {}", *unkept));
    json.member("warnings", warnings);
    if (replay) replay->write(json, *session);
    json.end_object();
    const std::lock_guard lock(mutex);
    facts = json.text();
    run = made;
    // The command of a run that is not saved uses the model's file, which must have the same text.
    command = made.empty() && (!changes.empty() || !is_saved) ? "" : training_command(present, made);
    if (!made.empty() && !changes.empty()) command = command_line({"graphrun", "replay", run});
    numbers = std::move(changeable);
  }

  std::string train(const Arguments& asked) {
    Diagnostics diagnostics(Diagnostics::Format::text, true);
    unkept.reset();
    keep([&] {
      Arguments trial = asked;
      const RunFolder made_and_removed(trial);
      const OutputFiles opened(trial);
    });
    present = asked;
    is_saved = holds_the_text(asked);
    Arguments& arguments = present;
    if (unkept) arguments.run_dir.clear();
    RunFolder own(arguments);
    OutputFiles outputs(arguments);
    Model model = read_model(arguments, diagnostics);
    outputs.reject_read(model);
    const std::string settings = training_settings(model);
    make_hyperparameters_runtime(model);
    Session made = open_session(std::move(model), arguments, diagnostics);
    {
      const std::lock_guard lock(session_mutex);
      session.emplace(std::move(made));
      cancellable = &*session;
    }
    std::optional<History> history;
    keep([&] {
      own.begin(*session);
      history.emplace(outputs, *session, arguments.hash_weights, std::nullopt, false, diagnostics);
    });
    folder = &own;
    replay.emplace(*session);
    sent_step = steps_done = steps_of_epoch = 0;
    add_frame(0, 0, false);
    send_facts();
    options = {};
    options.keep_losses = false;
    options.hash_weights = arguments.hash_weights;
    options.on_report = [&](const Report& one) {
      if (history) history->report(one);
      report(one);
    };
    options.on_losses = [&](std::span<const double> losses) {
      for (const double loss : losses) loss_sum += loss;
      loss_count += losses.size();
    };
    options.on_first_step = [&] {
      if (ends || stops) session->cancel();
    };
    options.on_step_end = [&](const StepEnd& at) { on_step_end(at); };
    began_at = sent_at = sent_step_at = Profiler::now();
    evaluating = evaluation = 0;
    last = {};
    due = 0;
    options.step_end_every = poll_every();
    set_state("running");
    TrainResult training = [&] {
      try {
        return session->train(options);
      } catch (const NotFinite& failure) {
        keep([&] { own.end(failure_json(*session, failure, settings)); });
        throw;
      }
    }();
    flush(Profiler::now());
    keep([&] {
      if (history) history->finish();
      if (outputs.weights) save_weights(*session, *outputs.weights);
    });
    constexpr double kAfterInterrupt = 0.05;
    Results results = ends ? evaluated(*session, kAfterInterrupt) : evaluated(*session);
    const bool cancelled = training.cancelled;
    report_end(results, training.steps);
    results.training = std::move(training);
    results.settings = settings;
    const std::string json = as_json(results);
    keep([&] { own.end(json); });
    const std::lock_guard lock(mutex);
    result = json;
    summary = as_text(results);
    return cancelled ? "stopped" : "done";
  }
};

StudioTraining::StudioTraining(Send send) : impl_(std::make_unique<Impl>(std::move(send))) {}

StudioTraining::~StudioTraining() {
  impl_->ends = true;
  {
    const std::lock_guard lock(impl_->session_mutex);
    if (impl_->cancellable != nullptr) impl_->cancellable->cancel();
  }
  impl_->worker.post([] {});  // wakes a paused training
}

void StudioTraining::start(const Arguments& arguments) {
  impl_->worker.post([impl = impl_.get(), arguments] { impl->begin(arguments); });
}

void StudioTraining::control(Control what) {
  impl_->worker.post([impl = impl_.get(), what] { impl->control(what); });
}

void StudioTraining::set_speed(double epochs_per_second) {
  impl_->worker.post([impl = impl_.get(), epochs_per_second] { impl->set_speed(epochs_per_second); });
}

void StudioTraining::look(std::function<void(Session*)> f) {
  impl_->worker.post([impl = impl_.get(), f = std::move(f)] { f(impl->session ? &*impl->session : nullptr); });
}

void StudioTraining::change(std::string_view number, double value) {
  impl_->change(number, value);
}

std::string StudioTraining::state_json() const {
  return impl_->state_json(true);
}

std::uint64_t StudioTraining::number() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->serial;
}

}  // namespace graphrun::cli
