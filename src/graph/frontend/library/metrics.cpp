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
      {{"rmse", "root mean squared error, in the target's units"},
       nullptr,
       &Column::rmse,
       false,
       "mse",
       2,
       Finish::root},
      {{"accuracy", "fraction of correctly classified rows; in multi-label rows, all labels must be correct"},
       [](Of s) { return s.accuracy; },
       nullptr,
       true,
       "accuracy"},
      {{"mae", "mean absolute error, in the target's units"}, nullptr, &Column::mae, false, "mae", 1},
      {{"r2",
        "coefficient of determination: 1 if every prediction is exact, 0 for a model that always predicts the mean"},
       nullptr,
       &Column::r2,
       true,
       "mse",
       2,
       Finish::r2},
      {{"mape", "mean absolute error as a fraction of the target (0.1: 10 %)"}, nullptr, &Column::mape},
      {{"mean_residual", "mean of prediction minus target (above 0: too high)"},
       nullptr,
       &Column::mean_residual,
       std::nullopt},
      row("balanced_accuracy", "mean recall over the classes that occur in the target",
          [](Of s) { return s.balanced_accuracy; }),
      row("precision",
          "correct fraction of the rows predicted as the second class; with more than two classes, the mean over all",
          positive<&Class::precision, &Mean::precision>),
      row("recall",
          "fraction of the second class's rows predicted as this class; with more than two classes, the mean over all",
          positive<&Class::recall, &Mean::recall>),
      row("f1", "harmonic mean of precision and recall; with more than two classes, the mean over all",
          positive<&Class::f1, &Mean::f1>),
      row("precision_macro", "mean precision over the classes in the target or the predictions",
          [](Of s) { return s.macro.precision; }),
      row("recall_macro", "mean recall over the classes in the target or the predictions",
          [](Of s) { return s.macro.recall; }),
      row("f1_macro", "mean F1 over the classes in the target or the predictions", [](Of s) { return s.macro.f1; }),
      row("precision_micro", "precision from TP and FP summed over all classes",
          [](Of s) { return s.micro.precision; }),
      row("recall_micro", "recall from TP and FN summed over all classes", [](Of s) { return s.micro.recall; }),
      row("f1_micro", "F1 from TP, FP and FN summed over all classes", [](Of s) { return s.micro.f1; }),
      row("top_2", "top-2 accuracy, for more than 2 classes", [](Of s) { return top(s, 2); }),
      row("top_3", "top-3 accuracy, for more than 3 classes", [](Of s) { return top(s, 3); }),
      row("top_5", "top-5 accuracy, for more than 5 classes", [](Of s) { return top(s, 5); }),
      row("auc", "area under the ROC curve: 1 is perfect, 0.5 is guessing", [](Of s) { return s.auc; }),
      row("average_precision", "area under the precision-recall curve", [](Of s) { return s.average_precision; }),
      row("mcc", "Matthews correlation coefficient: 1 is perfect, 0 is guessing", [](Of s) { return s.mcc; }),
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

std::optional<bool> more_is_better(std::string_view metric) {
  if (metric == "loss") return false;
  const MetricDef* def = find_metric(metric.substr(0, metric.find('.')));
  return def == nullptr ? std::nullopt : def->more_is_better;
}

}  // namespace graphrun
