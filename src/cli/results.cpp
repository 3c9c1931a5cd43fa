#include "results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "graphrun/error.h"
#include "json_writer.h"
#include "profile.h"
#include "terminal.h"

namespace graphrun::cli {
namespace {

// Calls f(name, value) for the loss and each metric; a metric that is called loss is the loss.
template <class F>
void each_number(const Metrics& metrics, F f) {
  f("loss", metrics.loss);
  for (const auto& [name, value] : metrics.values) {
    if (name != "loss") f(name, value);
  }
}

double steps_per_second(const TrainResult& training) {
  return training.seconds > 0 ? static_cast<double>(training.steps) / training.seconds : 0;
}

}  // namespace

Results evaluated(Session& session, double seconds) {
  const double until = Profiler::now() + seconds;
  const auto left = [&] { return until - Profiler::now(); };
  Results results;
  results.model = session.model().name;
  results.executor = session.executor();
  results.math = name_of(session.program().math);
  for (std::size_t i = 0; i < kSplits.size(); ++i) {
    if (!session.has_split(kSplits[i])) continue;
    results.splits[i] = session.evaluate(kSplits[i], left());
    if (!results.splits[i]) results.left_out.push_back(fmt::format("{} loss", kSplits[i]));
  }
  results.arena_bytes = session.program().arena_bytes;
  results.weights_hash = session.weights_hash(left());
  if (!results.weights_hash) results.left_out.emplace_back("weights' hash");
  return results;
}

std::string as_json(const Results& results) {
  JsonWriter json;
  json.begin_object();
  json.member("model", results.model).member("executor", results.executor).member("math", results.math);
  const bool is_other = results.splits.back().has_value();
  for (std::size_t i = 0; i < kSplits.size(); ++i) {
    if (is_other != (i + 1 == kSplits.size())) continue;
    json.key(kSplits[i]);
    if (!results.splits[i]) {
      json.null();
      continue;
    }
    json.begin_object();
    each_number(*results.splits[i], [&](std::string_view name, double value) { json.member(name, value); });
    json.end_object();
  }
  if (const auto& training = results.training) {
    json.member("epochs", training->epochs).member("steps", training->steps);
    json.member("seconds", training->seconds).member("steps_per_second", steps_per_second(*training));
    json.member("interrupted", training->cancelled);
  }
  json.member("arena_bytes", results.arena_bytes).member("weights_hash", results.weights_hash);
  if (results.profile) write_profile(json.key("profile"), *results.profile);
  json.end_object();
  return json.text() + "\n";
}

// A column for each split the model has, a row for the loss and each metric, then the run itself.
std::string as_text(const Results& results) {
  std::string text =
      paint(stdout, Style::bold, fmt::format("{} on {}", printable(results.model), results.executor)) + "\n";
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
  if (const auto& training = results.training) {
    line("epochs", fmt::format("{}{}", training->epochs, training->cancelled ? " (interrupted)" : ""));
    line("steps", grouped(training->steps));
    line("seconds", fmt::format("{:.3f}", training->seconds));
    line("steps/s", human_rate(steps_per_second(*training)));
  }
  line("arena", human_bytes(results.arena_bytes));
  for (std::size_t i = 0; i < results.regions.size(); ++i) line(i == 0 ? "regions" : "", results.regions[i]);
  if (results.weights_hash) line("weights", *results.weights_hash);
  if (!results.left_out.empty()) line("left out", fmt::format("{} (interrupted)", fmt::join(results.left_out, ", ")));
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

}  // namespace graphrun::cli
