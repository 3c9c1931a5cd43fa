#include "cli/stored_runs/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/student_t.h"
#include "cli/stored_runs/run_table.h"
#include "cli/terminal/terminal.h"
#include "graphrun/error.h"
#include "graphrun/scores.h"

namespace graphrun::cli {
namespace {

constexpr double kConfidence = 0.95;

std::string text_in(const RunRecord& run, std::string_view key) {
  const RunRecord::Field* field = run.find(key);
  return field == nullptr ? "-" : field->text;
}

// The interval for the mean difference d of n pairs is d ± t s sqrt(1/n), with s the standard deviation of the
// differences and t Student's quantile for n - 1 degrees of freedom (NIST/SEMATECH e-Handbook of Statistical Methods,
// 7.3.1.1). The training rows of k folds overlap, so their differences are not independent: with folds it is
// d ± t s sqrt(1/n + 1/(k-1)) (Nadeau and Bengio, Inference for the Generalization Error, Machine Learning 52, 2003).
void compare_with_best(ComparedSetting& setting, const ComparedSetting& best, double overlap, bool larger_is_better) {
  std::vector<double> differences;
  for (const auto& [repeat, value] : setting.metrics)
    if (const auto other = best.metrics.find(repeat); other != best.metrics.end())
      differences.push_back(value - other->second);
  setting.pairs = differences.size();
  if (setting.pairs > 0) setting.difference = mean_of(differences);
  if (setting.pairs < 2) return;
  const double half = student_t(kConfidence, setting.pairs - 1) * std_dev_of(differences) *
                      std::sqrt(1 / static_cast<double>(setting.pairs) + overlap);
  setting.low = setting.difference - half;
  setting.high = setting.difference + half;
  setting.verdict = setting.low <= 0 && setting.high >= 0          ? "not distinguishable"
                    : (setting.difference > 0) == larger_is_better ? "better"
                                                                   : "worse";
}

// Finds or adds the setting of a run.
ComparedSetting& setting_of(SettingComparison& comparison, const RunRecord& run) {
  std::vector<std::string> values;
  for (const std::string& key : comparison.keys) values.push_back(text_in(run, key));
  const auto found = std::ranges::find(comparison.settings, values, &ComparedSetting::values);
  if (found != comparison.settings.end()) return *found;
  comparison.settings.emplace_back().values = values;
  return comparison.settings.back();
}

}  // namespace

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double std_dev_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return values.size() < 2 ? NAN : std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::string spread_text(double mean, double std_dev) {
  if (std::isnan(mean)) return "-";
  if (std::isnan(std_dev)) return fmt::format("{:.4g}", mean);
  // Equal values have a mean with a rounding error.
  return fmt::format("{:.4g} ± {:.2g}", mean, std_dev <= 1e-14 * std::abs(mean) ? 0 : std_dev);
}

SettingComparison compare_settings(std::vector<RunRecord> runs, std::string_view sort) {
  std::erase_if(runs, [](const RunRecord& run) { return run.state >= RunRecord::State::unfinished; });
  SettingComparison comparison;
  comparison.keys = compared_keys(runs);
  const bool marked = sort.starts_with('-');
  if (marked) sort.remove_prefix(1);
  comparison.metric = sort.empty() ? "validation.loss" : known_key(runs, sort);
  for (const char* loss : {"train.loss", "test.loss", "validation.loss"})
    if (sort.empty() && std::ranges::any_of(runs, [&](const RunRecord& run) { return run.find(loss) != nullptr; }))
      comparison.metric = loss;
  double overlap = 0;
  for (const RunRecord& run : runs) {
    ComparedSetting& setting = setting_of(comparison, run);
    const RunRecord::Field *metric = run.find(comparison.metric), *k = run.find("data.folds.k");
    if (run.state != RunRecord::State::done || metric == nullptr || !std::isfinite(metric->number.value_or(NAN))) {
      ++setting.incomplete;
    } else if (setting.metrics.try_emplace({text_in(run, kSeedKey), text_in(run, kFoldKey)}, *metric->number).second) {
      setting.folders.push_back(run.folder);
      if (k != nullptr && text_in(run, kFoldKey) != text_in(runs[0], kFoldKey))
        overlap = std::max(overlap, 1 / (k->number.value_or(2) - 1));
    }
  }
  for (ComparedSetting& setting : comparison.settings) {
    std::vector<double> values;
    for (const auto& [repeat, value] : setting.metrics) values.push_back(value);
    setting.mean = mean_of(values);
    setting.std_dev = std_dev_of(values);
  }
  // "validation.auc.TARGET" or "scores.test.OUTPUT.auc"
  const std::size_t first = comparison.metric.find('.') + 1, last = comparison.metric.rfind('.') + 1;
  const std::optional<bool> by_name = more_is_better(comparison.metric.substr(first));
  const bool larger_is_better = by_name ? *by_name : more_is_better(comparison.metric.substr(last)).value_or(marked);
  const auto is_better = [&](const ComparedSetting& a, const ComparedSetting& b) {
    if (a.metrics.empty() || b.metrics.empty()) return a.metrics.size() > b.metrics.size();
    return larger_is_better ? b.mean < a.mean : a.mean < b.mean;
  };
  std::ranges::stable_sort(comparison.settings, is_better);
  const auto runs_in = [](const ComparedSetting& setting) { return setting.metrics.size(); };
  const auto best = std::ranges::max_element(comparison.settings, {}, runs_in);  // the first of several
  const bool names_setting = std::ranges::find(comparison.keys, comparison.metric) != comparison.keys.end();
  if (best == comparison.settings.end() || best->metrics.empty() || names_setting)
    throw Error(ErrorKind::input, "runs.metric", fmt::format("no completed run has the metric '{}'", comparison.metric),
                "--sort names the metric to compare by, as in validation.loss");
  for (ComparedSetting& setting : comparison.settings)
    if (&setting != &*best) compare_with_best(setting, *best, overlap, larger_is_better);
  best->pairs = best->metrics.size();
  best->verdict = "best";
  return comparison;
}

std::vector<std::vector<std::string>> comparison_table(const SettingComparison& comparison) {
  const bool incomplete = std::ranges::any_of(comparison.settings, &ComparedSetting::incomplete);
  std::vector<std::vector<std::string>> rows(1);
  for (const std::string& key : comparison.keys) rows[0].push_back(distinct_part(key, comparison.keys));
  rows[0].emplace_back("runs");
  if (incomplete) rows[0].emplace_back("incomplete");
  rows[0].push_back(printable(comparison.metric));
  rows[0].insert(rows[0].end(), {"difference", "95 % interval", "verdict"});
  for (const ComparedSetting& setting : comparison.settings) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const std::string& value : setting.values) row.push_back(printable(value));
    row.push_back(fmt::format("{}", setting.metrics.size()));
    if (incomplete) row.push_back(fmt::format("{}", setting.incomplete));
    row.push_back(spread_text(setting.mean, setting.std_dev));
    row.push_back(std::isnan(setting.difference) ? "-" : fmt::format("{:+.3g}", setting.difference));
    row.push_back(std::isnan(setting.low) ? "-" : fmt::format("[{:.3g}, {:.3g}]", setting.low, setting.high));
    row.push_back(setting.verdict);
  }
  return rows;
}

std::string comparison_note(const SettingComparison& comparison) {
  if (comparison.settings.size() == 1) return "There is only one setting, so there is nothing to compare.";
  if (std::ranges::all_of(comparison.settings, [](const ComparedSetting& one) { return std::isnan(one.low); })) {
    if (comparison.settings[0].metrics.size() > 1) return "No other setting has at least two completed runs.";
    return "Confidence intervals need runs with at least two seeds for each setting: sweep --seeds 5.";
  }
  const bool by_fold = comparison.settings[0].metrics.begin()->first.second != "-";
  return fmt::format("Differences in {} to the best setting, by equal seed{}, with 95 % confidence intervals.",
                     printable(comparison.metric), by_fold ? " and fold" : "");
}

std::string comparison_text(const SettingComparison& comparison) {
  return fmt::format("{}\n{}\n", text_table(comparison_table(comparison)), comparison_note(comparison));
}

std::vector<RunRecord> comparison_records(const SettingComparison& comparison) {
  std::vector<RunRecord> records;
  for (const ComparedSetting& setting : comparison.settings) {
    std::vector<RunRecord::Field>& fields = records.emplace_back().fields;
    for (std::size_t k = 0; k < comparison.keys.size(); ++k)
      fields.push_back({comparison.keys[k], setting.values[k], std::nullopt});
    fields.push_back({"metric", comparison.metric, std::nullopt});
    const auto runs = static_cast<double>(setting.metrics.size()), incomplete = static_cast<double>(setting.incomplete),
               pairs = static_cast<double>(setting.pairs);
    for (const auto& [key, value] : {std::pair{"runs", runs},
                                     {"incomplete", incomplete},
                                     {"mean", setting.mean},
                                     {"std", setting.std_dev},
                                     {"difference", setting.difference},
                                     {"low", setting.low},
                                     {"high", setting.high},
                                     {"pairs", pairs}})
      fields.push_back({key, std::isnan(value) ? "" : fmt::format("{}", value), value});
    fields.push_back({"verdict", setting.verdict, std::nullopt});
  }
  return records;
}

}  // namespace graphrun::cli
