// sweep_table.h: the results of a sweep as a text table, CSV and JSON, a row for each setting.
// Contract: pure functions. Not handled here: reading and order of the results (sweep.cpp).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/stored_runs/comparison.h"
#include "cli/stored_runs/sweep_plan.h"

namespace graphrun::cli {

struct SettingFigures {
  std::size_t runs = 0;
  double steps = 0;
  std::vector<std::string> failed_after;              // step count of each failed run
  std::map<std::string, std::vector<double>> values;  // key: metric

  const std::vector<double>* find(const std::string& key) const {
    const auto at = values.find(key);
    return at == values.end() ? nullptr : &at->second;
  }
};

struct SweepSummary {
  std::vector<std::string> keys;
  std::vector<SettingFigures> figures;  // one per setting
  std::vector<std::size_t> order;       // indices of settings
  bool any_failed = false;
  SettingComparison comparison;
};

std::string sweep_text(const SweepPlan& plan, const SweepSummary& summary);
std::string sweep_csv(const SweepPlan& plan, const SweepSummary& summary);
std::string sweep_json(const SweepPlan& plan, const SweepSummary& summary);

}  // namespace graphrun::cli
