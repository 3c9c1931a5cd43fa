// runs.cpp: the verb `runs`: results of stored runs and their differences.
#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"
#include "cli/command_line/verbs.h"
#include "cli/stored_runs/comparison.h"
#include "cli/stored_runs/run_table.h"
#include "cli/terminal/terminal.h"
#include "graphrun/error.h"
#include "graphrun/run_folder.h"

namespace graphrun::cli {
namespace {

std::vector<RunRecord> runs_of(const std::vector<std::string>& folders) {
  std::vector<RunRecord> runs;
  for (const std::string& folder : folders) {
    if (is_run_folder(folder)) {
      runs.push_back(read_run(folder));
      continue;
    }
    std::vector<RunRecord> found = read_runs(folder);
    if (found.empty())
      throw Error(ErrorKind::input, "runs.none", fmt::format("no run is in '{}'", folder),
                  "graphrun train MODEL.json --run-dir makes one");
    std::move(found.begin(), found.end(), std::back_inserter(runs));
  }
  return runs;
}

// Sorts numerically if both are numbers; runs without the metric come last. "-KEY": descending.
void sort_by(std::vector<RunRecord>& runs, std::string_view key) {
  const bool falling = key.starts_with('-');
  if (falling) key.remove_prefix(1);
  if (key == "run") {
    std::stable_sort(runs.begin(), runs.end(), [&](const RunRecord& a, const RunRecord& b) {
      return falling ? b.name < a.name : a.name < b.name;
    });
    return;
  }
  const std::string whole = known_key(runs, key);
  const auto before = [&](const RunRecord& a, const RunRecord& b) {
    const RunRecord::Field *x = a.find(whole), *y = b.find(whole);
    if (x == nullptr || y == nullptr) return y == nullptr && x != nullptr;
    if (falling) std::swap(x, y);
    return x->number && y->number ? *x->number < *y->number : x->text < y->text;
  };
  std::stable_sort(runs.begin(), runs.end(), before);
}

int run_runs(const Arguments& arguments, Diagnostics&) {
  std::vector<RunRecord> runs = runs_of(arguments.names);
  if (arguments.compare) {
    if (!arguments.columns.empty())
      throw Error(ErrorKind::input, "usage.flags", "--columns goes with the list of runs, not with --compare");
    const SettingComparison comparison = compare_settings(runs, arguments.sort);
    const std::vector<RunRecord> records = comparison_records(comparison);
    std::vector<std::string> keys;
    for (const RunRecord::Field& field : records.front().fields) keys.push_back(field.key);
    write_results(arguments.json  ? runs_json(records)
                  : arguments.csv ? runs_csv(records, keys)
                                  : comparison_text(comparison));
    return kDone;
  }
  if (!arguments.sort.empty()) sort_by(runs, arguments.sort);
  const bool compares = std::all_of(arguments.names.begin(), arguments.names.end(), is_run_folder) && runs.size() > 1;
  std::vector<std::string> keys = compares ? differing_keys(runs) : listed_keys(runs);
  if (!arguments.columns.empty()) {
    keys.clear();
    for (const std::string& column : arguments.columns) keys.push_back(known_key(runs, column));
  }
  if (arguments.json) {
    write_results(runs_json(runs));
  } else if (arguments.csv) {
    write_results(runs_csv(runs, keys));
  } else {
    write_results(text_table(run_table(runs, keys, compares)));
  }
  return kDone;
}

}  // namespace

const Verb runs_verb = {
    "runs",
    "",
    Positionals::folders,
    "list stored runs or compare selected ones",
    R"(Lists the runs that `train --run-dir` and `sweep` stored in a folder (default: ./runs). Each row has the
settings in which the runs differ, and the loss and the metrics of every split. If you name several runs, it
prints only the settings and results that differ. --sort selects the order, and --columns the columns.

--compare combines runs that differ only in seed or fold. For each setting, it prints the mean of a metric (of
--sort; -METRIC: larger is better) and the difference to the best setting by equal seed, with a 95 %
confidence interval (Student's t). If the interval contains 0, the settings are not distinguishable.

With --json, stdout is one array with an object for each run, or for each setting with --compare;
docs/reference/command-line.md lists the keys.)",
    R"(graphrun train model.json --run-dir runs
graphrun runs runs --sort test.loss
graphrun runs runs/0001 runs/0002
graphrun runs model-sweep --compare --sort validation.loss)",
    run_runs};

}  // namespace graphrun::cli
