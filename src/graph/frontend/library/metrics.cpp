#include "graph/frontend/library/metrics.h"

namespace graphrun {
namespace {

using Of = const ClassScores&;

double top(Of scores, int k) {
  for (const auto& [count, share] : scores.top) {
    if (count == k) return share;
  }
  return kNoScore;
}

// The positive class of two; of more classes the mean.
template <double PerClassScores::*kOfClass, double ClassAverages::*kOfMean>
double positive(Of scores) {
  return scores.kind == ClassScores::Kind::two ? scores.classes[1].*kOfClass : scores.macro.*kOfMean;
}

MetricDef row(std::string_view name, std::string_view doc, double (*score)(Of), bool more_is_better = true) {
  return {{name, doc}, score, nullptr, more_is_better};
}

std::vector<MetricDef> all_metrics() {
  using Finish = MetricDef::Finish;
  using Column = ColumnScores;
  using Class = PerClassScores;
  using Mean = ClassAverages;
  return {
      {{"mse", "mean squared error"}, nullptr, nullptr, false, "mse", 2},
      {{"rmse", "root of mse; the mean over the columns"}, nullptr, &Column::rmse, false, "mse", 2, Finish::root},
      {{"accuracy", "fraction of correctly classified rows; with several labels, all must be correct"},
       [](Of s) { return s.accuracy; },
       nullptr,
       true,
       "accuracy"},
      {{"mae", "mean absolute error"}, nullptr, &Column::mae, false, "mae", 1},
      {{"r2", "1 - mse / variance of the target (1: perfect, 0: as good as the mean); the mean over the columns"},
       nullptr,
       &Column::r2,
       true,
       "mse",
       2,
       Finish::r2},
      {{"mape", "mean absolute error relative to the target"}, nullptr, &Column::mape},
      {{"mean_residual", "mean of prediction - target"}, nullptr, &Column::mean_residual, std::nullopt},
      row("balanced_accuracy", "mean recall over the classes that occur in the target",
          [](Of s) { return s.balanced_accuracy; }),
      row("precision", "TP / (TP + FP) of the second of two classes; with more, the mean",
          positive<&Class::precision, &Mean::precision>),
      row("recall", "TP / (TP + FN), with the same class", positive<&Class::recall, &Mean::recall>),
      row("f1", "harmonic mean of precision and recall, with the same class", positive<&Class::f1, &Mean::f1>),
      row("precision_macro", "mean precision over the classes in the target or the predictions",
          [](Of s) { return s.macro.precision; }),
      row("recall_macro", "mean recall over the same classes", [](Of s) { return s.macro.recall; }),
      row("f1_macro", "mean F1 over the same classes", [](Of s) { return s.macro.f1; }),
      row("precision_micro", "precision from sums over the classes", [](Of s) { return s.micro.precision; }),
      row("recall_micro", "recall from sums over the classes", [](Of s) { return s.micro.recall; }),
      row("f1_micro", "F1 from sums over the classes", [](Of s) { return s.micro.f1; }),
      row("top_2", "top-2 accuracy, for more than 2 classes", [](Of s) { return top(s, 2); }),
      row("top_3", "top-3 accuracy, for more than 3 classes", [](Of s) { return top(s, 3); }),
      row("top_5", "top-5 accuracy, for more than 5 classes", [](Of s) { return top(s, 5); }),
      row("auc", "area under the ROC curve", [](Of s) { return s.auc; }),
      row("average_precision", "area under the precision-recall curve", [](Of s) { return s.average_precision; }),
      row("mcc", "Matthews correlation coefficient", [](Of s) { return s.mcc; }),
      row(
          "log_loss", "mean of -log of the probability of the actual class", [](Of s) { return s.log_loss; }, false),
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
