// eval.cpp: the verb `eval`: evaluates saved weights on every split.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "cli/command_line/open.h"
#include "cli/command_line/verbs.h"
#include "cli/pictures/report_page.h"
#include "cli/results/results.h"
#include "cli/terminal/output_files.h"
#include "cli/terminal/slow_operation.h"
#include "cli/terminal/terminal.h"
#include "graphrun/error.h"
#include "graphrun/show.h"

namespace graphrun::cli {

namespace {

// On data that was not trained with, but not on the test split, which measures the result.
void choose_thresholds(Session& session, const ThresholdRule& rule, Diagnostics& diagnostics) {
  const char* split = "train";
  for (const char* other : {"validation", "data"}) split = session.has_split(other) ? other : split;
  if (!session.choose_thresholds(rule, split))
    throw Error(ErrorKind::input, "eval.threshold", "--threshold: no output has two classes or several labels",
                "more than two classes have no threshold: the largest value decides; nor have more than 2^24 values");
  if (rule.by == ThresholdRule::By::value) return;
  for (const FittedStatistic& chosen : session.model().data.thresholds)
    diagnostics.note(fmt::format("{}: the best F1 on the split '{}' is at the threshold {:.6g}", chosen.name, split,
                                 fmt::join(chosen.values, ", ")));
}

int run_eval(const Arguments& arguments, Diagnostics& diagnostics) {
  OutputFiles outputs(arguments);
  Session session = open_session(arguments, diagnostics, nullptr, &outputs);
  if (const std::string& split_mismatch = session.model().data.split_mismatch; !split_mismatch.empty()) {
    throw Error(ErrorKind::input, "weights.split", split_mismatch + ": 'test' may contain training rows",
                "evaluate with the data and split of the training run, or give new rows their own split: "
                "\"test\": {...}");
  }
  if (arguments.verbose) describe(session, diagnostics);
  Results results = [&] {
    const SlowOperationNotice notice(diagnostics, "evaluating");
    if (arguments.threshold) choose_thresholds(session, *arguments.threshold, diagnostics);
    Results all = evaluated(session, std::numeric_limits<double>::infinity(), arguments.threshold.has_value());
    if (!arguments.importance.empty()) add_importance(all, session, arguments.importance);
    if (arguments.coefficients) all.coefficients = session.coefficients();
    if (arguments.intervals) add_intervals(all, session);
    return all;
  }();
  if (arguments.json) results.settings = training_settings(session.model());
  if (outputs.report) {
    ReportSource source;
    source.heading = "evaluation";
    source.graph_text = graph_of(arguments);
    source.environment = described_environment(arguments.command, session);
    outputs.report->write(report_page(session, results, source));
    outputs.report->commit();
  }
  write_results(arguments.json ? as_json(results) : as_text(results) + details_text(results));
  reject_non_finite(results);
  return kDone;
}

}  // namespace

const Verb eval_verb = {
    "eval",
    "test",
    Positionals::model,
    "evaluate trained weights on every split of the data",
    R"(Prints the loss and the metrics of every split for trained weights, from --weights or from a safetensors file
as the model. For classifiers, it prints accuracy, precision, recall, F1, ROC AUC, average precision and the
confusion matrix; for regressions, R2, errors and quantiles of the residuals (docs/reference/metrics.md).

eval splits and transforms the data as in the training run, so no training row gets into the test split. If
the rows or the split have changed, the exit code is 2. --data evaluates the rows of another file instead.
The file needs the same columns, including the one to predict. The results then have a single split, data.

With two classes or several labels, --threshold sets the smallest probability at which a class is predicted
(else the one stored with the weights, or above 1/2). f1 chooses the threshold with the best F1 on the
validation split; without one, on train or data. It also prints precision, recall and F1 at ten thresholds;
with --json, at each.

eval rejects a row whose class did not occur in training. --count-unseen accepts it if the target has the
transform one_hot, and counts it as a miss. The loss, which is undefined for such a row, is then left out.

--importance prints the permutation importance of each column on the test split: how much worse the metric
becomes, as mean and standard deviation of 10 shuffles of the column. One-hot parts are shuffled together.
--coefficients prints the coefficients of a linear model, in the units of its columns. --intervals prints
standard errors and 95 % confidence intervals of all parameters, if the loss is a sum of squares.

With --json, stdout is one object; docs/reference/command-line.md lists the keys.)",
    R"(graphrun train model.json --save-weights model.npz
graphrun eval model.json --weights model.npz
graphrun eval model.safetensors --threshold f1
graphrun eval model.json --weights model.npz --data held-out.csv
graphrun eval model.json --weights model.npz --importance loss)",
    run_eval};

}  // namespace graphrun::cli
