#include "graph/frontend/library/metrics.h"

namespace graphrun {
namespace {

using Of = const ClassScores&;

double top(Of scores, int k) {
  for (const auto& [most, share] : scores.top) {
    if (most == k) return share;
  }
  return kNoScore;
}

// Of two classes the one looked for.
template <double ClassFigures::*kOfClass, double ClassAverages::*kOfMean>
double positive(Of scores) {
  return scores.kind == ClassScores::Kind::two ? scores.classes[1].*kOfClass : scores.macro.*kOfMean;
}

MetricDef row(std::string_view name, std::string_view doc, double (*score)(Of), bool more_is_better = true) {
  return {{name, doc}, score, nullptr, more_is_better};
}

std::vector<MetricDef> all_metrics() {
  using Finish = MetricDef::Finish;
  using Column = ColumnScores;
  using Class = ClassFigures;
  using Mean = ClassAverages;
  return {
      {{"mse", "mean of the squared errors"}, nullptr, nullptr, false, "mse", 2},
      {{"rmse", "root of mse; the mean over the columns"}, nullptr, &Column::rmse, false, "mse", 2, Finish::root},
      {{"accuracy", "share of samples whose class is right, or all of whose labels are"},
       [](Of s) { return s.accuracy; },
       nullptr,
       true,
       "accuracy"},
      {{"mae", "mean of the absolute errors"}, nullptr, &Column::mae, false, "mae", 1},
      {{"r2",
        "1 - mse / variance of the target, 1 is perfect and 0 no better than its mean; the mean over the columns"},
       nullptr,
       &Column::r2,
       true,
       "mse",
       2,
       Finish::r2},
      {{"mape", "mean of the absolute errors, each divided by its target's size"}, nullptr, &Column::mape},
      {{"mean_residual", "mean of prediction - target"}, nullptr, &Column::mean_residual, std::nullopt},
      row("balanced_accuracy", "mean recall of the classes", [](Of s) { return s.balanced_accuracy; }),
      row("precision", "TP / (TP + FP) of the second of two classes, of several the mean",
          positive<&Class::precision, &Mean::precision>),
      row("recall", "TP / (TP + FN), likewise", positive<&Class::recall, &Mean::recall>),
      row("f1", "harmonic mean of precision and recall of a class, likewise", positive<&Class::f1, &Mean::f1>),
      row("precision_macro", "mean over the classes", [](Of s) { return s.macro.precision; }),
      row("recall_macro", "mean over the classes", [](Of s) { return s.macro.recall; }),
      row("f1_macro", "mean over the classes", [](Of s) { return s.macro.f1; }),
      row("precision_micro", "from sums over the classes", [](Of s) { return s.micro.precision; }),
      row("recall_micro", "from sums over the classes", [](Of s) { return s.micro.recall; }),
      row("f1_micro", "from sums over the classes", [](Of s) { return s.micro.f1; }),
      row("top_2", "top-2 accuracy, of more than 2 classes", [](Of s) { return top(s, 2); }),
      row("top_3", "top-3 accuracy, of more than 3 classes", [](Of s) { return top(s, 3); }),
      row("top_5", "top-5 accuracy, of more than 5 classes", [](Of s) { return top(s, 5); }),
      row("auc", "area under the ROC curve", [](Of s) { return s.auc; }),
      row("average_precision", "area under precision over recall", [](Of s) { return s.average_precision; }),
      row("matthews", "Matthews' correlation coefficient", [](Of s) { return s.matthews; }),
      row(
          "log_loss", "mean of -log of the true class's probability", [](Of s) { return s.log_loss; }, false),
  };
}

}  // namespace

const std::vector<MetricDef>& metrics() {
  static const std::vector<MetricDef> table = all_metrics();
  return table;
}

bool is_score(std::string_view metric) {
  return find_metric(metric.substr(0, metric.find('.'))) != nullptr;
}

}  // namespace graphrun
