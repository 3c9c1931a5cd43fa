#include "cli/pictures/log_pictures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

// False for the columns of a log that are not metrics.
bool is_measure(const std::string& column, const std::string& x) {
  if (column == x) return false;
  for (const char* other :
       {"epoch", "step", "seconds", "steps_per_second", "weights_hash", "accepted", "damping", "gradient_norm"}) {
    if (column == other) return false;
  }
  return column != "lr" && !column.starts_with("lr_");
}

std::vector<std::size_t> columns_to_draw(const Table& table, const std::string& x,
                                         const std::vector<std::string>& names) {
  std::vector<std::size_t> columns;
  for (const std::string& name : names) columns.push_back(find_column(table, name));
  if (!names.empty()) return columns;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (is_measure(table.columns[i], x)) columns.push_back(i);
  }
  if (columns.empty()) {
    throw Error(ErrorKind::input, "plot.columns",
                fmt::format("'{}' has no column to draw except {}", table.path, fmt::join(table.columns, ", ")),
                "--columns names those to draw");
  }
  return columns;
}

// Metric of a log's column: "loss" for "validation_loss", "h" for the statistics "h:min" and "h:mean".
std::string metric_of(const std::string& column) {
  for (const std::string prefix : {"validation_", "train_"})
    if (column.starts_with(prefix)) return column.substr(prefix.size());
  const std::size_t colon = column.rfind(':');
  const bool is_fraction = column.ends_with(":zeros") || column.ends_with(":nonfinite");
  return is_fraction ? column : column.substr(0, colon);
}

// Plots in the order in which metrics occur, with the names of their columns.
class MetricFigures {
 public:
  explicit MetricFigures(const std::string& x) : x_(x) {}

  // `run`: number and name of the log, if there are several.
  void add(const std::string& column, Points points, const std::pair<std::size_t, std::string>* run) {
    const std::string metric = metric_of(column);
    auto panel = std::ranges::find(panels_, metric, &Panel::metric);
    if (panel == panels_.end()) {
      panel = panels_.insert(panel, {metric, {}, {}});
      panel->figure.x.label = x_;
    }
    const auto known = std::ranges::find(panel->columns, column);
    const auto place = static_cast<std::size_t>(known - panel->columns.begin());
    if (known == panel->columns.end()) panel->columns.push_back(column);
    panel->figure.series.push_back({run != nullptr ? fmt::format("{} {}", run->second, column) : column,
                                    std::move(points.x), std::move(points.y), run != nullptr ? run->first : place,
                                    run != nullptr ? place : 0, false, points.sparse});
    panel->runs.push_back(run != nullptr ? run->second : column);
  }

  // The only column of a figure is the label of its axis.
  std::vector<plot::Figure> take() {
    std::vector<plot::Figure> figures;
    for (Panel& panel : panels_) {
      if (panel.columns.size() == 1) {
        panel.figure.y.label = panel.columns[0];
        for (std::size_t i = 0; i < panel.runs.size(); ++i) panel.figure.series[i].name = panel.runs[i];
      }
      figures.push_back(std::move(panel.figure));
    }
    return figures;
  }

 private:
  struct Panel {
    std::string metric;
    plot::Figure figure;
    std::vector<std::string> columns = {}, runs = {};
  };
  std::string x_;
  std::vector<Panel> panels_;
};

}  // namespace

std::vector<plot::Figure> log_pictures(const std::vector<NamedLog>& logs, const std::string& x,
                                       const std::vector<std::string>& columns) {
  MetricFigures figures(x);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const Table& table = logs[i].table;
    const std::vector<std::size_t> drawn = columns_to_draw(table, x, columns);
    std::vector<Points> curves = read_curves(table, find_column(table, x), drawn);
    const std::pair run{i, logs[i].name};
    for (std::size_t k = 0; k < drawn.size(); ++k) {
      if (columns.empty() && curves[k].x.empty()) continue;
      figures.add(table.columns[drawn[k]], std::move(curves[k]), logs.size() > 1 ? &run : nullptr);
    }
  }
  return figures.take();
}

std::vector<plot::Figure> log_pictures(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  Table table = read_table(path);
  if (std::ranges::find(table.columns, "epoch") == table.columns.end() ||
      std::ranges::find(table.columns, "loss") == table.columns.end())
    return {};
  return log_pictures({{"", std::move(table)}}, "epoch", {});
}

TrainingCurves::TrainingCurves(const Session& session, bool wanted) {
  if (!wanted) return;
  series_.push_back({"loss", {}, {}});
  if (session.has_split("validation")) {
    series_.push_back({"validation_loss", {}, {}});
    for (const std::string& name : session.metric_names()) series_.push_back({"validation_" + name, {}, {}});
  }
  const auto most = static_cast<std::size_t>(std::clamp<std::int64_t>(session.model().train.epochs + 1, 1, 1 << 20));
  for (plot::Series& series : series_) {
    series.x.reserve(most);
    series.y.reserve(most);
  }
}

void TrainingCurves::report(const Report& report) {
  if (series_.empty() || series_[0].x.size() == series_[0].x.capacity()) return;
  const auto add = [&](plot::Series& series, double value) {
    series.x.push_back(static_cast<double>(report.epoch));
    series.y.push_back(value);
  };
  add(series_[0], report.loss);
  if (report.validation == nullptr || series_.size() == 1) return;
  add(series_[1], report.validation->loss);
  for (std::size_t i = 2; i < series_.size(); ++i) add(series_[i], report.validation->values[i - 2].second);
}

std::vector<plot::Figure> TrainingCurves::figures(const std::string& log) {
  if (!log.empty()) return log_pictures(log);
  MetricFigures figures("epoch");
  for (plot::Series& series : series_) {
    const bool sparse = series.x.size() < series_[0].x.size();
    if (!series.x.empty()) figures.add(series.name, {std::move(series.x), std::move(series.y), sparse}, nullptr);
  }
  return figures.take();
}

}  // namespace graphrun::cli
