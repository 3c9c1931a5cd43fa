// training_warnings.cpp: reasons why training may learn less than expected.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/library/schedules.h"
#include "graph/frontend/model_check.h"
#include "graphrun/elements.h"
#include "session/trainer.h"

namespace graphrun {
namespace {
// Whether numbers, or class numbers of one-hot rows, only rise or only fall. False for few rows.
bool is_sorted(const HostTensor& tensor) {
  const std::vector<double> values = as_doubles(tensor);
  const auto rows = static_cast<std::ptrdiff_t>(tensor.shape()[0]);
  const std::ptrdiff_t width = rows < 10 ? 0 : std::ssize(values) / rows;
  bool rises = width > 0, falls = rises;
  double before = 0;
  for (std::ptrdiff_t i = 0; i < rows && (rises || falls); ++i) {
    const auto row = values.begin() + i * width;
    const double next = width == 1 ? *row : static_cast<double>(std::max_element(row, row + width) - row);
    rises = rises && (i == 0 || next >= before);
    falls = falls && (i == 0 || next <= before);
    before = next;
  }
  return rises != falls;
}

// Target by which the training rows are sorted; empty: they are not sorted.
std::string sorted_target(const Model& model) {
  const Split* train = model.data.find("train");
  for (const OutputSpec& output : model.outputs) {
    if (train == nullptr || output.target.empty()) continue;
    for (const auto& [name, tensor] : train->columns)
      if (name == output.target && is_sorted(tensor)) return name;
  }
  return {};
}

}  // namespace

std::vector<std::string> training_warnings(const LoadedModel& loaded) {
  std::vector<std::string> warnings = graph_warnings(loaded.model);
  const std::optional<std::size_t> index = loaded.phase_index("train");
  if (!index) return warnings;
  const Batches& batches = loaded.phases()[*index].batches;
  const std::int64_t count = batches.count(), epochs = loaded.model.train.epochs;
  if (count == 0 || epochs == 0) return warnings;
  const auto add_schedule = [&](const std::string& objective, const OptimizerSpec& optimizer) {
    const std::optional<ScheduleEnd> end = optimizer.lr ? end_at_zero(*optimizer.lr) : std::nullopt;
    if (!end) return;
    const double all = static_cast<double>(epochs) * (end->unit == "steps" ? static_cast<double>(count) : 1.0);
    if (all <= end->time) return;
    warnings.push_back(fmt::format(
        "{}the schedule '{}' ends at a learning rate of 0 after {} of {} {}: the last {:g} train nothing; give it "
        "\"{}\": {:g}, or train {} with --epochs",
        objective.empty() ? "" : objective + ": ", optimizer.lr->name, end->time, all, end->unit, all - end->time,
        end->unit, all - end->warmup, end->unit == "epochs" ? fmt::format("{:g}", end->time) : "less"));
  };
  if (const std::string target = sorted_target(loaded.model);
      count > 1 && !loaded.model.train.shuffle && !target.empty())
    warnings.push_back(fmt::format(
        "the training rows are sorted by '{}', so each batch sees only a part of its values; set \"shuffle\": true in "
        "\"train\"",
        target));
  add_schedule("", loaded.model.train.optimizer);
  for (const ObjectiveSpec& one : loaded.model.train.objectives) add_schedule(one.name, one.optimizer);
  if (batches.at(static_cast<std::uint64_t>(count - 1)) != 1) return warnings;
  const GraphBuilder::Impl& graph = loaded.model.graph.impl();
  for (const auto& [layer, x] : graph.batch_norms) {
    const TensorType& type = graph.graph[x].type;
    const bool is_one = type.rows == 1 && type.shape.with_batch(1).elements() == type.shape[type.shape.rank() - 1];
    if (!is_one) continue;
    warnings.push_back(
        batches.capacity == 1 || count == 1
            ? fmt::format("batch_norm '{}' makes zeros of a batch of one row, and every batch has one row: it lets "
                          "nothing through to be trained; use a larger --batch",
                          layer)
            : fmt::format("batch_norm '{}' makes zeros of a batch of one row, and the last batch of each epoch has one "
                          "row; leave it out with \"last_batch\": \"drop\" in \"train\"",
                          layer));
  }
  return warnings;
}

}  // namespace graphrun
