#include "cli/training/history.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "cli/training/event_log.h"
#include "cli/training/text_logs.h"

namespace graphrun::cli {
namespace {

std::vector<LogColumn> columns_of(const Session& session, bool hashes) {
  std::vector<LogColumn> columns = {{"epoch", "", "{}"},
                                    {"step", "", "{}"},
                                    {"seconds", "", "{:.6f}"},
                                    {"steps_per_second", "speed/steps_per_second", "{:.6g}"},
                                    {"loss", "loss/train", "{}"}};
  for (const ObjectiveSpec& one : session.model().train.objectives)
    columns.push_back({"train_" + one.name, one.name + "/train", "{}"});
  if (session.has_split("validation")) {
    columns.push_back({"validation_loss", "loss/validation", "{}"});
    for (const std::string& name : session.metric_names())
      columns.push_back({"validation_" + name, name + "/validation", "{}"});
  }
  const TrainSpec& train = session.model().train;
  for (const ObjectiveSpec& one : train.objectives) columns.push_back({"lr_" + one.name, "lr/" + one.name, "{:.6g}"});
  const std::vector<std::pair<std::string, double>> optimizer = session.optimizer_numbers();
  if (train.objectives.empty() && train.optimizer.name != "bfgs" && optimizer.empty())
    columns.push_back({"lr", "lr", "{:.6g}"});
  for (const auto& [name, value] : optimizer) columns.push_back({name, "optimizer/" + name, "{:.6g}"});
  if (train.lr_plateau) columns.push_back({"lr_factor", "lr_factor", "{}"});
  for (const std::string& value : session.watched()) {
    for (const char* figure : {"min", "max", "mean", "std", "zeros", "nonfinite"})
      columns.push_back({fmt::format("{}:{}", value, figure), fmt::format("{}/{}", value, figure), "{:.6g}"});
  }
  if (hashes) columns.push_back({"weights_hash", "", ""});
  return columns;
}

std::unique_ptr<LogWriter> text_log(OutputFile& file, bool each_row) {
  if (is_json_log(file.path())) return std::make_unique<JsonLog>(file, each_row);
  return std::make_unique<CsvLog>(file, each_row);
}

}  // namespace

History::History(OutputFiles& outputs, const Session& session, bool hashes, std::optional<std::uint64_t> resumed,
                 bool replaces, Diagnostics& diagnostics)
    : factor_(session.model().train.lr_plateau.has_value()), hashes_(hashes) {
  if (outputs.logs.empty() && !outputs.events) return;
  columns_ = columns_of(session, hashes);
  cells_.resize(columns_.size());
  if (session.has_split("validation")) metrics_ = 1 + session.metric_names().size();
  const auto begin = [&](std::unique_ptr<LogWriter> writer, OutputFile& file) {
    const bool goes_on = writer->begin(columns_, resumed.value_or(0));
    writers_.push_back(std::move(writer));
    if (const std::string place = file.publish(goes_on || replaces); place != file.path()) {
      diagnostics.note(fmt::format("'{}' is an older log, kept until this run ends; the new log is written to '{}'",
                                   file.path(), place));
    }
  };
  for (OutputFile& file : outputs.logs) begin(text_log(file, replaces || !outputs.rows_together), file);
  if (outputs.events) begin(std::make_unique<EventLog>(*outputs.events), *outputs.events);
}

void History::report(const Report& report) {
  if (writers_.empty()) return;
  std::size_t at = 0;
  const auto add = [&](LogCell cell) { cells_[at++] = cell; };
  add(static_cast<std::uint64_t>(report.epoch));
  add(report.step);
  add(report.seconds);
  add(report.steps_per_second);
  add(report.loss);
  for (const double loss : report.objectives) add(loss);
  for (std::size_t i = 0; i < metrics_; ++i) {
    if (report.validation == nullptr)
      add({});
    else
      add(i == 0 ? report.validation->loss : report.validation->values[i - 1].second);
  }
  for (const double lr : report.lr) add(lr);
  for (const double number : report.optimizer) add(number);
  if (factor_) add(report.lr_factor);
  const std::size_t figures = columns_.size() - at - (hashes_ ? 1 : 0);
  for (const Statistics& s : report.watched) {
    for (const double figure : {s.min, s.max, s.mean, s.std_dev, s.zeros, s.nonfinite}) add(figure);
  }
  for (std::size_t i = report.watched.size() * 6; i < figures; ++i) add({});
  if (hashes_) report.weights ? add(LogHash{*report.weights}) : add({});
  for (const auto& writer : writers_) writer->write({report.step, cells_});
}

void History::finish() {
  std::exception_ptr failure;
  for (const auto& writer : writers_) {
    try {
      writer->finish();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace graphrun::cli
