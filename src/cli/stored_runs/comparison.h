// comparison.h: settings of stored runs, compared by one metric. Runs that differ only in seed or fold have one
// setting. Contract: pure functions of the records. Only runs that are done and have a finite metric count; interrupted
// and failed ones are reported as incomplete. The best setting has the best mean among the settings with the most runs,
// so that a setting whose other runs failed is not the best. Not handled here: choice of the runs (runs.cpp,
// sweep.cpp).
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/run_folder.h"

namespace graphrun::cli {

struct ComparedSetting {
  std::vector<std::string> values;  // one per key of the comparison; "-" if its runs lack the key
  std::map<std::pair<std::string, std::string>, double> metrics;  // key: seed and fold; runs that count
  std::vector<std::string> folders;                               // the same runs
  std::size_t incomplete = 0, pairs = 0;  // pairs: runs whose seed and fold a run of the best setting has too
  double mean = NAN, std_dev = NAN;       // NaN: no run; fewer than two
  // Mean over the pairs of the metric minus that of the best setting, and its 95 % confidence interval. NaN: no pair,
  // or the best setting; fewer than two pairs.
  double difference = NAN, low = NAN, high = NAN;
  std::string verdict = "-";  // "best", "worse", "better" (with fewer runs), "not distinguishable"
};

struct SettingComparison {
  std::string metric;
  std::vector<std::string> keys;          // settings that differ
  std::vector<ComparedSetting> settings;  // best mean first, those without a run last
};

// `sort`: metric as --sort names it ("-" in front: larger is better); empty: the loss of validation, test or train.
// Throws Error (kind input) if no run counts.
SettingComparison compare_settings(std::vector<RunRecord> runs, std::string_view sort);
// Header and a row for each setting; and the sentence below the table.
std::vector<std::vector<std::string>> comparison_table(const SettingComparison& comparison);
std::string comparison_note(const SettingComparison& comparison);
std::string comparison_text(const SettingComparison& comparison);
// The same numbers with all digits, as a record for each setting.
std::vector<RunRecord> comparison_records(const SettingComparison& comparison);

double mean_of(const std::vector<double>& values);     // NaN without values
double std_dev_of(const std::vector<double>& values);  // sample standard deviation: divides by n - 1
std::string spread_text(double mean, double std_dev);  // "0.5 ± 0.01"; "-" for NaN

}  // namespace graphrun::cli
