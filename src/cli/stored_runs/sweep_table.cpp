#include "cli/stored_runs/sweep_table.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/terminal/csv_cell.h"
#include "cli/terminal/terminal.h"
#include "graphrun/error.h"

namespace graphrun::cli {

std::string sweep_text(const SweepPlan& plan, const SweepSummary& summary) {
  std::vector<std::vector<std::string>> rows(1);
  for (const Axis& axis : plan.axes) rows[0].push_back(printable(axis.path));
  if (!plan.rungs.empty()) rows[0].insert(rows[0].end(), {"rung", "steps"});
  rows[0].emplace_back("runs");
  if (summary.any_failed) rows[0].emplace_back("failed");
  for (const std::string& key : summary.keys) rows[0].push_back(printable(key));
  for (const std::size_t s : summary.order) {
    std::vector<std::string> row;
    for (const std::string& value : plan.settings[s]) row.push_back(printable(value));
    if (!plan.rungs.empty())
      row.insert(row.end(), {fmt::format("{}", plan.rung_of[s]), fmt::format("{}", summary.figures[s].steps)});
    row.push_back(fmt::format("{}", summary.figures[s].runs));
    if (const auto& failed = summary.figures[s].failed_after; !failed.empty())
      row.push_back(fmt::format("{} (step {})", failed.size(), fmt::join(failed, ", ")));
    else if (summary.any_failed)
      row.emplace_back("0");
    for (const std::string& key : summary.keys) {
      const std::vector<double>* values = summary.figures[s].find(key);
      row.push_back(values == nullptr ? "-" : spread_text(mean_of(*values), std_dev_of(*values)));
    }
    rows.push_back(std::move(row));
  }
  std::string text = text_table(rows);
  if (plan.split_seed)
    text +=
        fmt::format("\nEvery run has the split of seed {}; --over data.split_seed=1:5 varies it.\n", *plan.split_seed);
  return summary.comparison.settings.size() < 2 ? text : text + "\n" + comparison_text(summary.comparison);
}

std::string sweep_csv(const SweepPlan& plan, const SweepSummary& summary) {
  std::string text;
  for (const Axis& axis : plan.axes) text += csv_cell(axis.path) + ",";
  if (!plan.rungs.empty()) text += "rung,steps,";
  text += summary.any_failed ? "runs,failed" : "runs";
  for (const std::string& key : summary.keys) text += fmt::format(",{0}.mean,{0}.std", csv_cell(key));
  for (const std::size_t s : summary.order) {
    text += '\n';
    for (const std::string& value : plan.settings[s]) text += csv_cell(value) + ",";
    if (!plan.rungs.empty()) text += fmt::format("{},{},", plan.rung_of[s], summary.figures[s].steps);
    text += fmt::format("{}", summary.figures[s].runs);
    if (summary.any_failed) text += fmt::format(",{}", summary.figures[s].failed_after.size());
    for (const std::string& key : summary.keys) {
      const std::vector<double>* values = summary.figures[s].find(key);
      text += values == nullptr     ? std::string(",,")
              : values->size() == 1 ? fmt::format(",{},", mean_of(*values))
                                    : fmt::format(",{},{}", mean_of(*values), std_dev_of(*values));
    }
  }
  return text + "\n";
}

std::string sweep_json(const SweepPlan& plan, const SweepSummary& summary) {
  JsonWriter json;
  json.begin_array();
  for (const std::size_t s : summary.order) {
    json.begin_object().key("over").begin_object();
    for (std::size_t a = 0; a < plan.axes.size(); ++a) json.member(plan.axes[a].path, plan.settings[s][a]);
    json.end_object().member("runs", summary.figures[s].runs);
    if (!plan.rungs.empty()) json.member("rung", plan.rung_of[s]).member("steps", summary.figures[s].steps);
    if (const auto& failed = summary.figures[s].failed_after; !failed.empty()) json.member("failed_after", failed);
    if (plan.split_seed) json.member("split_seed", *plan.split_seed);
    json.key("figures").begin_object();
    for (const std::string& key : summary.keys) {
      const std::vector<double>* values = summary.figures[s].find(key);
      if (values == nullptr) continue;
      json.key(key).begin_object().member("mean", mean_of(*values)).key("std");
      values->size() > 1 ? json.value(std_dev_of(*values)) : json.null();
      json.end_object();
    }
    json.end_object().end_object();
  }
  return json.end_array().text() + "\n";
}

}  // namespace graphrun::cli
