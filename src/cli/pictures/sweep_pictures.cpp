// sweep_pictures.cpp: pictures of compared settings: a metric over their values, and mean curves.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "cli/pictures/model_pictures.h"
#include "cli/stored_runs/curves.h"
#include "cli/stored_runs/run_table.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

using Names = std::vector<std::string>;

std::size_t index_in(const Names& names, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
}

// Distinct values of a setting, numbers in ascending order.
Names values_of(const SettingComparison& comparison, const std::string& key) {
  std::set<std::pair<double, std::string>> sorted;
  for (const ComparedSetting& setting : comparison.settings) {
    const std::string& value = setting.values[index_in(comparison.keys, key)];
    sorted.emplace(parse_number<double>(value).value_or(INFINITY), value);
  }
  Names values;
  for (const auto& [number, value] : sorted) values.push_back(value);
  return values;
}

// Columns are values of the first setting, rows of the second.
plot::Panels heat_map(const SettingComparison& comparison, const Names& keys) {
  plot::HeatMap map;
  map.x_label = distinct_part(keys[0], comparison.keys);
  map.y_label = distinct_part(keys[1], comparison.keys);
  map.columns = values_of(comparison, keys[0]);
  map.rows = values_of(comparison, keys[1]);
  map.width = map.columns.size();
  map.height = map.rows.size();
  std::vector<std::vector<double>> means(map.width * map.height);
  const std::size_t across = index_in(comparison.keys, keys[0]), down = index_in(comparison.keys, keys[1]);
  for (const ComparedSetting& setting : comparison.settings) {
    const std::size_t row = index_in(map.rows, setting.values[down]);
    if (setting.metrics.empty()) continue;
    means[row * map.width + index_in(map.columns, setting.values[across])].push_back(setting.mean);
  }
  for (const std::vector<double>& cell : means) map.cells.push_back(mean_of(cell));  // NaN if it is empty
  plot::Panels panels;
  panels.title =
      fmt::format("{}, mean over seeds{}", comparison.metric, comparison.keys.size() > 2 ? " and other settings" : "");
  panels.maps.push_back(std::move(map));
  panels.numbers = true;
  return panels;
}

// One axis for each setting, with equidistant values; the last axis is the metric.
void add_parallel(plot::Figure& figure, const SettingComparison& comparison, const Names& keys) {
  for (const std::string& key : keys)
    figure.parallel.push_back({distinct_part(key, comparison.keys), values_of(comparison, key)});
  double low = INFINITY, high = -INFINITY;
  for (const ComparedSetting& setting : comparison.settings)
    low = std::fmin(low, setting.mean), high = std::fmax(high, setting.mean);
  figure.parallel.push_back({comparison.metric, {fmt::format("{:.3g}", low), fmt::format("{:.3g}", high)}});
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    plot::Series& series = figure.series[i];
    for (std::size_t a = 0; a <= keys.size(); ++a) {
      series.x.push_back(static_cast<double>(a));
      if (a == keys.size()) break;
      const Names& values = figure.parallel[a].values;
      const auto at = index_in(values, comparison.settings[i].values[index_in(comparison.keys, keys[a])]);
      series.y.push_back(values.size() < 2 ? 0.5 : static_cast<double>(at) / static_cast<double>(values.size() - 1));
    }
    series.y.push_back(low < high ? (comparison.settings[i].mean - low) / (high - low) : 0.5);
    series.shade = 1 - 0.8 * static_cast<double>(i) / static_cast<double>(figure.series.size());
  }
}

// Mean of a log's column at the epochs that the logs of all runs of a setting have.
void add_mean_curve(plot::Series& series, const ComparedSetting& setting, const std::string& column) {
  std::map<double, std::vector<double>> values;
  for (const std::string& folder : setting.folders) {
    const Table table = read_table((std::filesystem::path(folder) / "log.csv").string());
    const Points points = read_curves(table, find_column(table, "epoch"), {find_column(table, column)})[0];
    for (std::size_t i = 0; i < points.x.size(); ++i) values[points.x[i]].push_back(points.y[i]);
  }
  for (const auto& [x, ys] : values) {
    if (ys.size() != setting.folders.size()) continue;
    series.x.push_back(x);
    series.y.push_back(mean_of(ys));
  }
}

}  // namespace

Picture sweep_picture(const SettingComparison& comparison, std::string_view what, Names columns,
                      std::size_t max_lines) {
  const std::size_t differ = comparison.keys.size();
  if (what.empty()) what = differ > 2 ? "parallel" : differ == 2 ? "heatmap" : "curves";
  if (what != "curves" && what != "heatmap" && what != "parallel")
    throw Error(ErrorKind::input, "plot.what", fmt::format("a folder of runs has no plot '{}'", what),
                "there are heatmap, parallel and curves");
  plot::Figure figure;
  for (const ComparedSetting& setting : comparison.settings) {
    if (setting.metrics.empty() || figure.series.size() == (what == "curves" ? 8 : max_lines)) continue;
    figure.series.push_back({distinct_name(comparison.keys, setting.values), {}, {}, figure.series.size()});
  }
  const std::size_t drawn = figure.series.size(), all = comparison.settings.size();
  const std::string best = drawn < all ? fmt::format(", best {} of {} settings", drawn, all) : "";
  if (what == "curves") {
    const std::string& metric = comparison.metric;
    const std::string usual = metric.starts_with("validation.") ? "validation_" + metric.substr(11) : "loss";
    figure.x.label = "epoch";
    figure.y.label = columns.empty() ? usual : columns[0];
    figure.title = fmt::format("{}, mean over seeds{}", figure.y.label, best);
    for (std::size_t i = 0; i < drawn; ++i) add_mean_curve(figure.series[i], comparison.settings[i], figure.y.label);
    return figure;
  }
  for (std::string& column : columns) column = known_key(comparison.keys, column);
  if (columns.empty()) columns = comparison.keys;
  if (columns.size() < 2)
    throw Error(ErrorKind::input, "plot.columns", fmt::format("{} needs two settings", what),
                fmt::format("the runs differ in {}", fmt::join(comparison.keys, ", ")));
  if (what == "heatmap") return heat_map(comparison, columns);
  figure.title = fmt::format("{}, mean over seeds{}", comparison.metric, best);
  add_parallel(figure, comparison, columns);
  return figure;
}

}  // namespace graphrun::cli
