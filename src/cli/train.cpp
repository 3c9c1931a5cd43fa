// train.cpp: the verb `train`: fit the model, evaluate it on every split, print the results.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "allocations.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "history.h"
#include "interrupt.h"
#include "open.h"
#include "profile.h"
#include "progress.h"
#include "result_file.h"
#include "terminal.h"
#include "verbs.h"

namespace graphrun::cli {
namespace {

constexpr std::array<std::string_view, 3> kSplits = {"train", "validation", "test"};

struct Results {
  std::string model;
  std::string executor;
  std::array<std::optional<Metrics>, kSplits.size()> splits;
  TrainResult training;
  double steps_per_second = 0;
  std::uint64_t arena_bytes = 0;
  std::string weights_hash;
  std::optional<Profile> profile;
};

// One number a line.
std::string as_lines(const std::vector<double>& losses) {
  std::string text;
  for (const double loss : losses) text += fmt::format("{:.9g}\n", loss);
  return text;
}

// Calls f(name, value) for the loss and each metric; a metric that is called loss is the loss.
template <class F>
void each_number(const Metrics& metrics, F f) {
  f("loss", metrics.loss);
  for (const auto& [name, value] : metrics.values) {
    if (name != "loss") f(name, value);
  }
}

std::string as_json(const Results& results) {
  JsonWriter json;
  json.begin_object();
  json.member("model", results.model).member("executor", results.executor);
  for (std::size_t i = 0; i < kSplits.size(); ++i) {
    json.key(kSplits[i]);
    if (!results.splits[i]) {
      json.null();
      continue;
    }
    json.begin_object();
    each_number(*results.splits[i], [&](std::string_view name, double value) { json.member(name, value); });
    json.end_object();
  }
  json.member("epochs", results.training.epochs).member("steps", results.training.steps);
  json.member("seconds", results.training.seconds).member("steps_per_second", results.steps_per_second);
  json.member("arena_bytes", results.arena_bytes).member("weights_hash", results.weights_hash);
  if (results.profile) write_profile(json.key("profile"), *results.profile);
  json.end_object();
  return json.text() + "\n";
}

// A column for each split the model has, a row for the loss and each metric, then the run itself.
std::string as_text(const Results& results) {
  std::string text = paint(stdout, Style::bold, fmt::format("{} on {}", results.model, results.executor)) + "\n";
  std::string head;
  std::vector<std::pair<std::string, std::string>> rows;
  for (std::size_t i = 0; i < kSplits.size(); ++i) {
    if (!results.splits[i]) continue;
    head += fmt::format("{:>14}", kSplits[i]);
    std::size_t row = 0;
    each_number(*results.splits[i], [&](std::string_view name, double value) {
      if (row == rows.size()) rows.emplace_back(name, "");
      rows[row++].second += fmt::format("{:>14.6g}", value);
    });
  }
  std::size_t width = 10;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  const auto line = [&](std::string_view label, std::string_view content) {
    text += fmt::format("{:<{}}  {}\n", label, width, content);
  };
  line("", head);
  for (const auto& [name, numbers] : rows) line(name, numbers);
  const TrainResult& training = results.training;
  line("epochs", fmt::format("{}{}", training.epochs, training.cancelled ? " (interrupted)" : ""));
  line("steps", grouped(training.steps));
  line("seconds", fmt::format("{:.3f}", training.seconds));
  line("steps/s", human_rate(results.steps_per_second));
  line("arena", human_bytes(results.arena_bytes));
  line("weights", results.weights_hash);
  if (results.profile) text += "\n" + profile_table(*results.profile);
  return text;
}

void refuse_non_finite(const Results& results) {
  for (std::size_t i = 0; i < kSplits.size(); ++i) {
    if (!results.splits[i]) continue;
    each_number(*results.splits[i], [&](std::string_view name, double value) {
      if (std::isfinite(value)) return;
      throw Error(ErrorKind::run, "run.not_finite",
                  fmt::format("{} on the {} split is {}, not a finite number", name, kSplits[i], value));
    });
  }
}

}  // namespace

int run_train(const Arguments& arguments, Diagnostics& diagnostics) {
  ResultFile losses(arguments.losses, "losses.write");
  ResultFile trace(arguments.profile_trace, "profile.write");
  Session session = open_session(arguments, diagnostics);
  if (arguments.verbose) describe(session, diagnostics);
  History history(arguments.log, session);

  Results results;
  const Interrupt interrupt(session);
  AllocationWatch watch;
  {
    Progress progress(diagnostics.chatty());
    TrainOptions options;
    options.keep_losses = !arguments.losses.empty();
    options.on_report = [&](const Report& report) {
      history.report(report);
      progress.report(report);
      if (interrupted()) session.cancel();  // for a signal that came before train() began
    };
    if (arguments.assert_no_alloc) options.on_first_step = [&] { watch.arm(session); };
    results.training = session.train(options);
    watch.disarm();
  }
  if (losses.wanted()) losses.write(as_lines(results.training.losses));
  if (arguments.verbose) {  // of training alone: evaluation adds its own
    for (const auto& [name, value] : session.counters()) diagnostics.note(fmt::format("{}: {}", name, value));
  }

  results.model = session.model().name;
  if (results.model.empty()) results.model = std::filesystem::path(arguments.model).stem().string();
  results.executor = session.executor();
  for (std::size_t i = 0; i < kSplits.size(); ++i) {
    if (session.has_split(kSplits[i])) results.splits[i] = session.evaluate(kSplits[i]);
  }
  const TrainResult& training = results.training;
  if (training.seconds > 0) results.steps_per_second = static_cast<double>(training.steps) / training.seconds;
  results.arena_bytes = session.program().arena_bytes;
  results.weights_hash = session.weights_hash();

  if (arguments.session.profiling != Profiling::off) {
    results.profile = session.profile();
    if (trace.wanted()) trace.write(chrome_trace(*results.profile));
  }

  write_results(arguments.json ? as_json(results) : as_text(results));
  refuse_non_finite(results);
  if (arguments.assert_no_alloc) tell_allocations(watch, diagnostics);
  return training.cancelled || interrupted() ? kInterrupted : kDone;
}

}  // namespace graphrun::cli
