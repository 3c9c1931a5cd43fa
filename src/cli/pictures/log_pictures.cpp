#include "cli/stored_runs/loss_curves.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/stored_runs/curves.h"

namespace graphrun::cli {
namespace {

plot::Figure over_epochs() {
  plot::Figure figure;
  figure.x.label = "epoch";
  figure.y.label = "loss";
  return figure;
}

}  // namespace

plot::Figure loss_curves_of(const std::string& log) {
  plot::Figure figure = over_epochs();
  std::error_code ignored;
  if (!std::filesystem::exists(log, ignored)) return figure;
  const Table table = read_table(log);
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    if (table.columns[i] == "loss" || table.columns[i] == "validation_loss") columns.push_back(i);
  if (columns.empty()) return figure;
  std::vector<Points> curves = read_curves(table, find_column(table, "epoch"), columns);
  for (std::size_t i = 0; i < columns.size(); ++i)
    figure.series.push_back({.name = table.columns[columns[i]],
                             .x = std::move(curves[i].x),
                             .y = std::move(curves[i].y),
                             .colour = i,
                             .marks = curves[i].sparse});
  return figure;
}

LossCurves::LossCurves(const Session& session, bool wanted) : wanted_(wanted) {
  if (!wanted_) return;
  const auto most = static_cast<std::size_t>(std::clamp<std::int64_t>(session.model().train.epochs + 1, 1, 1 << 20));
  for (plot::Series* series : {&loss_, &validation_}) {
    series->x.reserve(most);
    series->y.reserve(most);
  }
}

void LossCurves::report(const Report& report) {
  if (!wanted_ || loss_.x.size() == loss_.x.capacity()) return;
  const auto add = [&](plot::Series& series, double loss) {
    series.x.push_back(static_cast<double>(report.epoch));
    series.y.push_back(loss);
  };
  add(loss_, report.loss);
  if (report.validation != nullptr) add(validation_, report.validation->loss);
}

plot::Figure LossCurves::figure(const std::string& log) {
  if (!log.empty()) return loss_curves_of(log);
  plot::Figure figure = over_epochs();
  figure.series.push_back(std::move(loss_));
  validation_.marks = validation_.x.size() < figure.series[0].x.size();
  if (!validation_.x.empty()) figure.series.push_back(std::move(validation_));
  return figure;
}

}  // namespace graphrun::cli
