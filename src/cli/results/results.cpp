#include "cli/results/results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/json_writer.h"
#include "cli/results/budget_lines.h"
#include "cli/results/score_tables.h"
#include "cli/terminal/terminal.h"
#include "cli/training/profile.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr int kSchema = 2;  // version of the JSON keys (docs/reference/command-line.md)

// Calls f(name, value) for the loss and each metric, except a metric named "loss".
template <class F>
void each_number(const Metrics& metrics, F f) {
  f("loss", metrics.loss);
  for (const auto& [name, value] : metrics.values) {
    if (name != "loss") f(name, value);
  }
}

// Rows of a class that the loss does not know.
bool has_unseen(const Results& results, std::size_t split) {
  return std::ranges::any_of(results.scores[split],
                             [](const OutputScores& one) { return one.classes && one.classes->unseen > 0; });
}

// "-" if the score is undefined for these rows.
std::string figure_text(std::string_view name, double value) {
  return std::isnan(value) && is_score(name) ? "-" : fmt::format("{:.6g}", value);
}

double steps_per_second(const TrainResult& training) {
  return training.seconds > 0 ? static_cast<double>(training.steps - training.first_step) / training.seconds : 0;
}

}  // namespace

std::string epochs_text(const TrainResult& training) {
  return fmt::format("{}{}", training.epochs,
                     training.cancelled          ? " (interrupted)"
                     : !training.stopped.empty() ? fmt::format(" (stopped: {})", training.stopped)
                     : training.stopped_early    ? " (stopped early)"
                                                 : "");
}

Results evaluated(Session& session, double seconds, bool with_curves) {
  const double until = Profiler::now() + seconds;
  const auto left = [&] { return until - Profiler::now(); };
  Results results;
  results.model = session.model().name;
  results.executor = session.executor();
  results.math = name_of(session.program().math);
  results.seed = session.model().train.seed;
  const TrainSpec& train = session.model().train;
  if (train.early_stopping) results.monitor = train.early_stopping->monitor;
  results.lowers_lr = train.lr_plateau.has_value();
  results.optimizer = session.optimizer_numbers();
  for (const FittedStatistic& chosen : session.model().data.thresholds)
    results.thresholds += fmt::format("{}{} {:.6g}", results.thresholds.empty() ? "" : "; ", printable(chosen.name),
                                      fmt::join(chosen.values, ", "));
  for (std::size_t i = 0; i < kSplits.size(); ++i) {
    if (!session.has_split(kSplits[i])) continue;
    results.splits[i] = session.evaluate(kSplits[i], left());
    if (!results.splits[i]) results.left_out.push_back(fmt::format("{} loss", kSplits[i]));
    const Split& split = *session.model().data.find(kSplits[i]);
    results.rows[i] = static_cast<std::uint64_t>(split.samples());
    results.times[i] = {split.first, split.last};
    if (auto scores = session.scores(kSplits[i], left(), with_curves))
      results.scores[i] = std::move(*scores);
    else
      results.left_out.push_back(fmt::format("{} metrics", kSplits[i]));
    if (has_unseen(results, i) && results.splits[i]) results.splits[i] = Metrics{kNoScore, {}};
  }
  if (session.model().train.largest_batch) results.largest_batch = session.model().graph.batch();
  results.arena_bytes = session.program().arena_bytes;
  if (BudgetSummary budget = session.fusion().budget; budget.is_changed()) {
    results.budget_lines = budget_lines(budget, session.program());
    results.budget = std::move(budget);
  }
  results.weights_hash = session.weights_hash(left());
  if (!results.weights_hash) results.left_out.emplace_back("weights' hash");
  return results;
}

void add_importance(Results& results, Session& session, const std::string& metric) {
  for (const std::string_view split : kSplits)
    if (session.has_split(split)) results.importance_split = split;
  results.importance = session.importance(results.importance_split, metric);
  results.importance_metric = metric;
}

void add_intervals(Results& results, Session& session) {
  constexpr double kMaxOffset = 0.1;
  results.intervals.emplace();
  try {
    results.intervals = session.intervals();
    if (results.intervals->offset > kMaxOffset)
      results.intervals_note = fmt::format(
          "unreliable: the parameters are {:.2g} standard errors from the minimum; train until no further descent",
          results.intervals->offset);
  } catch (const Error& error) {  // the other results are valid
    const Diagnostic& first = error.diagnostics().front();
    results.intervals_note = fmt::format("{}{}{}", first.message, first.hint.empty() ? "" : "; ", first.hint);
  }
}

std::string as_json(const Results& results) {
  JsonWriter json;
  json.begin_object().member("schema", kSchema).member("model", results.model);
  json.member("executor", results.executor).member("math", results.math);
  json.member("seed", results.seed).key("settings").json(results.settings);
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
  json.key("scores").begin_object();
  for (std::size_t i = 0; i < kSplits.size(); ++i) {
    if (results.scores[i].empty()) continue;
    json.key(kSplits[i]).begin_object();
    for (const OutputScores& scores : results.scores[i]) {
      json.key(scores.output).begin_object();
      write_scores(json, scores);
      json.end_object();
    }
    json.end_object();
  }
  json.end_object();
  if (const auto& training = results.training) {
    json.member("epochs", training->epochs).member("steps", training->steps);
    json.member("seconds", training->seconds).member("steps_per_second", steps_per_second(*training));
    json.member("interrupted", training->cancelled);
    if (!training->stopped.empty()) json.member("stopped", training->stopped);
    if (!results.monitor.empty()) {
      json.key("early_stopping").begin_object().member("stopped", training->stopped_early);
      json.member("monitor", results.monitor);
      const Best best = training->best.value_or(Best{});
      json.key("best").begin_object().member("epoch", best.epoch).member("step", best.step);
      json.member("value", training->best ? best.value : std::nan("")).end_object();
      json.member("restored", training->restored).end_object();
    }
    if (results.lowers_lr) json.member("lr_factor", training->lr_factor);
    if (!results.optimizer.empty()) json.key("optimizer").begin_object();
    for (const auto& [name, value] : results.optimizer) json.member(name, value);
    if (!results.optimizer.empty()) json.end_object();
    if (training->first_step > 0) json.member("first_step", training->first_step);
  }
  json.member("arena_bytes", results.arena_bytes).member("weights_hash", results.weights_hash);
  if (results.budget) write_budget(json.key("budget"), *results.budget);
  if (results.profile) write_profile(json.key("profile"), *results.profile);
  if (!results.importance_metric.empty()) {
    json.key("importance").begin_object().member("split", results.importance_split);
    json.member("metric", results.importance_metric).key("columns").begin_array();
    for (const Importance& one : results.importance)
      json.begin_object().member("column", one.column).member("mean", one.mean).member("std", one.std_dev).end_object();
    json.end_array().end_object();
  }
  if (!results.coefficients.empty()) json.key("coefficients").begin_object();
  for (const auto& [column, value] : results.coefficients) json.member(column, value);
  if (!results.coefficients.empty()) json.end_object();
  if (const auto& fit = results.intervals) {
    json.key("intervals").begin_object().member("note", results.intervals_note).member("residuals", fit->residuals);
    json.member("std_dev", fit->std_dev).member("offset", fit->offset).key("parameters").begin_array();
    for (const ParameterInterval& one : fit->parameters) {
      json.begin_object().member("parameter", one.parameter).member("value", one.value);
      json.member("std_error", one.std_error).member("low", one.low).member("high", one.high).end_object();
    }
    json.end_array().end_object();
  }
  json.end_object();
  return json.text() + "\n";
}

std::string failure_json(const Session& session, const NotFinite& failure, const std::string& settings) {
  JsonWriter json;
  json.begin_object().member("schema", kSchema).member("model", session.model().name);
  json.member("executor", session.executor()).member("seed", session.model().train.seed).key("settings").json(settings);
  json.member("failed", failure.diagnostics().front().message).member("steps", failure.steps());
  return json.end_object().text() + "\n";
}

// Table with a column per split and a row per loss, metric and score; then facts about the run.
std::string as_text(const Results& results) {
  std::string text =
      paint(stdout, Style::bold, fmt::format("{} on {}", printable(results.model), results.executor)) + "\n";
  std::string head;
  std::vector<std::pair<std::string, std::string>> rows = {{"rows", ""}};
  std::size_t column = 0;  // index of the split's column
  const auto add = [&](const std::string& name, std::string_view cell) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one.first == name; });
    if (row == rows.end()) row = rows.insert(rows.end(), {name, ""});
    if (row->second.size() <= 14 * column)
      row->second += fmt::format("{:>{}}", cell, 14 * (column + 1) - row->second.size());
  };
  for (std::size_t i = 0; i < kSplits.size(); ++i) {
    if (!results.splits[i]) continue;
    head += fmt::format("{:>14}", kSplits[i]);
    add("rows", grouped(results.rows[i]));
    if (const auto& [first, last] = results.times[i]; !first.empty()) add("from", first), add("to", last);
    each_number(*results.splits[i], [&](std::string_view name, double value) {
      add(std::string(name), has_unseen(results, i) ? "-" : figure_text(name, value));
    });
    for (const OutputScores& scores : results.scores[i]) {
      for (const auto& [name, value] : main_figures(scores)) {
        add(results.scores[i].size() == 1 ? name : fmt::format("{}.{}", name, printable(scores.output)),
            std::isnan(value) ? "-" : fmt::format("{:.6g}", value));
      }
    }
    ++column;
  }
  std::size_t width = 10;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  const auto line = [&](std::string_view label, std::string_view content) {
    text += fmt::format("{:<{}}  {}\n", label, width, content);
  };
  line("", head);
  for (const auto& [name, numbers] : rows) line(name, numbers);
  if (const auto& training = results.training) {
    line("epochs", epochs_text(*training));
    if (const auto& best = training->best) {
      line("best epoch", fmt::format("{}: {} {:.6g}{}", best->epoch, results.monitor, best->value,
                                     training->restored ? ", weights restored" : ""));
    }
    if (!results.thresholds.empty()) line("threshold", results.thresholds + ", chosen on validation");
    if (training->lr_factor != 1) line("lr factor", fmt::format("{:.6g}", training->lr_factor));
    line("steps", training->first_step == 0 ? grouped(training->steps)
                                            : fmt::format("{} (the first {} before)", grouped(training->steps),
                                                          grouped(training->first_step)));
    for (const auto& [name, value] : results.optimizer) {
      std::string label = name;
      std::ranges::replace(label, '_', ' ');
      line(label, name == "accepted" ? fmt::format("{} steps", grouped(static_cast<std::uint64_t>(value)))
                                     : fmt::format("{:.2g}", value));
    }
    line("seconds", fmt::format("{:.3f}", training->seconds));
    line("steps/s", human_rate(steps_per_second(*training)));
  }
  if (results.largest_batch > 0) line("batch", fmt::format("{}, the largest that fits", results.largest_batch));
  line("arena", human_bytes(results.arena_bytes));
  for (std::size_t i = 0; i < results.budget_lines.size(); ++i) line(i == 0 ? "budget" : "", results.budget_lines[i]);
  for (std::size_t i = 0; i < results.regions.size(); ++i) line(i == 0 ? "regions" : "", results.regions[i]);
  if (results.weights_hash) line("weights", *results.weights_hash);
  if (!results.left_out.empty()) line("left out", fmt::format("{} (interrupted)", fmt::join(results.left_out, ", ")));
  if (!results.intervals_note.empty()) line("intervals", results.intervals_note);
  if (const auto& fit = results.intervals; fit && !fit->parameters.empty()) {
    text += fmt::format("\n{:<20}{:>14}{:>14}{:>32}\n", "parameter", "value", "std error", "95 % interval");
    for (const ParameterInterval& one : fit->parameters)
      text += fmt::format("{:<20}{:>14.6g}{:>14.3g}{:>32}\n", printable(one.parameter), one.value, one.std_error,
                          fmt::format("[{:.6g}, {:.6g}]", one.low, one.high));
  }
  if (results.profile) text += "\n" + profile_table(*results.profile);
  return text;
}

std::string details_text(const Results& results) {
  std::string text;
  for (std::size_t i = kSplits.size(); i-- > 0 && text.empty();) {
    for (const OutputScores& scores : results.scores[i]) text += details_text(scores, kSplits[i]);
  }
  if (!results.coefficients.empty()) text += fmt::format("\n{:<20}{:>14}\n", "column", "coefficient");
  for (const auto& [column, value] : results.coefficients)
    text += fmt::format("{:<20}{:>14.6g}\n", printable(column), value);
  if (results.importance_metric.empty()) return text;
  text += fmt::format("\n{} on {}: {} if a column is shuffled\n{:<20}{:>14}{:>14}\n", results.importance_metric,
                      results.importance_split,
                      more_is_better(results.importance_metric).value_or(false) ? "decrease" : "increase", "column",
                      "mean", "std");
  for (const Importance& one : results.importance)
    text += fmt::format("{:<20}{:>14.6g}{:>14.6g}\n", printable(one.column), one.mean, one.std_dev);
  return text;
}

void reject_non_finite(const Results& results) {
  for (std::size_t i = 0; i < kSplits.size(); ++i) {
    if (!results.splits[i]) continue;
    each_number(*results.splits[i], [&](std::string_view name, double value) {
      if (std::isfinite(value) || (is_score(name) && !results.scores[i].empty()) || has_unseen(results, i)) return;
      throw Error(ErrorKind::run, "run.not_finite",
                  fmt::format("{} on the {} split is {}, not a finite number", name, kSplits[i], value));
    });
  }
}

}  // namespace graphrun::cli
