// curve_pictures.cpp: pictures over all decision thresholds: ROC curve, precision-recall curve and calibration.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/pictures/model_pictures.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr std::size_t kMaxClassCurves = 8;
constexpr std::size_t kCalibrationBins = 10;

struct ClassRows {
  double positive, negative;
};

plot::Series roc_curve(const PerClassScores& one, ClassRows rows) {
  plot::Series series{fmt::format("{} (AUC {:.4f})", one.name, one.auc), {0}, {0}};
  for (const CurvePoint& point : one.curve) {
    series.x.push_back(static_cast<double>(point.false_positives) / rows.negative);
    series.y.push_back(static_cast<double>(point.true_positives) / rows.positive);
  }
  return series;
}

// Steps, whose area is the average precision.
plot::Series precision_recall_curve(const PerClassScores& one, ClassRows rows) {
  plot::Series series{fmt::format("{} (average precision {:.4f})", one.name, one.average_precision), {}, {}};
  double before = 0;
  for (const CurvePoint& point : one.curve) {
    const auto found = static_cast<double>(point.true_positives);
    if (found / rows.positive == before) continue;
    const double precision = found / (found + static_cast<double>(point.false_positives));
    series.x.insert(series.x.end(), {before, found / rows.positive});
    series.y.insert(series.y.end(), {precision, precision});
    before = found / rows.positive;
  }
  return series;
}

// Mean probability and fraction of positive rows in bins of equal width, like scikit-learn's calibration_curve.
plot::Series calibration_curve(const PerClassScores& one) {
  struct Bin {
    double rows = 0, sum = 0, positive = 0;
  };
  std::vector<Bin> bins(kCalibrationBins);
  CurvePoint before;
  for (const CurvePoint& point : one.curve) {
    if (!(point.threshold >= 0 && point.threshold <= 1)) {
      throw Error(ErrorKind::input, "plot.calibration",
                  fmt::format("the predicted values of {} are not probabilities: {} is one", one.name, point.threshold),
                  "a sigmoid or softmax makes probabilities");
    }
    std::size_t k = 0;
    while (k + 1 < kCalibrationBins && point.threshold > static_cast<double>(k + 1) / kCalibrationBins) ++k;
    const auto found = static_cast<double>(point.true_positives - before.true_positives),
               rows = found + static_cast<double>(point.false_positives - before.false_positives);
    bins[k].rows += rows;
    bins[k].sum += rows * point.threshold;
    bins[k].positive += found;
    before = point;
  }
  plot::Series series{one.name, {}, {}};
  series.marks = true;
  for (const Bin& bin : bins) {
    if (bin.rows == 0) continue;
    series.x.push_back(bin.sum / bin.rows);
    series.y.push_back(bin.positive / bin.rows);
  }
  return series;
}

}  // namespace

plot::Figure curve_picture(Session& session, std::string_view what, const std::string& split) {
  const bool is_roc = what == "roc", is_pr = what == "pr";
  const auto all = session.scores(split, std::numeric_limits<double>::infinity(), true);
  for (const OutputScores& scores : *all) {
    if (!scores.classes) continue;
    plot::Figure figure;
    figure.title = fmt::format("{} on {}: {}", column_of(session.model(), scores.target), split,
                               is_roc  ? "ROC curve"
                               : is_pr ? "precision-recall curve"
                                       : "calibration");
    figure.x.label = is_roc ? "false positive rate" : is_pr ? "recall" : "mean predicted probability";
    figure.y.label = is_roc ? "true positive rate" : is_pr ? "precision" : "fraction of positive rows";
    const PerClassScores* last = nullptr;
    std::size_t known = 0;
    for (const PerClassScores& one : scores.classes->classes) {
      if (one.curve.empty() || std::isnan(one.auc) || ++known > kMaxClassCurves) continue;
      last = &one;
      const ClassRows rows{static_cast<double>(one.rows), static_cast<double>(scores.rows - one.rows)};
      plot::Series series = is_roc  ? roc_curve(one, rows)
                            : is_pr ? precision_recall_curve(one, rows)
                                    : calibration_curve(one);
      series.colour = figure.series.size();
      figure.series.push_back(std::move(series));
    }
    if (last == nullptr) continue;
    if (known > kMaxClassCurves) figure.title += fmt::format(", the first {} of {} classes", kMaxClassCurves, known);
    const bool is_single = figure.series.size() == 1;
    if (is_single && (is_roc || is_pr)) {  // the decision in use, projected to both axes
      const double found = static_cast<double>(last->true_positives), said = static_cast<double>(last->predicted);
      const double x = is_roc ? (said - found) / static_cast<double>(scores.rows - last->rows) : last->recall,
                   y = is_roc ? last->recall : last->precision, threshold = last->threshold;
      figure.series.push_back(
          {fmt::format("threshold {:.4g}", std::isnan(threshold) ? 0.5 : threshold), {0, x, x}, {y, y, 0}, 1, 2});
    }
    const double low = is_pr ? static_cast<double>(last->rows) / static_cast<double>(scores.rows) : 0;
    if (!is_pr || is_single)
      figure.series.push_back({is_roc || is_pr ? "guessing" : "calibrated", {0, 1}, {low, is_pr ? low : 1}, 6, 1});
    return figure;
  }
  const bool any_class = std::ranges::any_of(*all, [](const auto& one) { return one.classes.has_value(); });
  throw Error(ErrorKind::input, "plot.curve",
              fmt::format("{} has no {}", any_class ? fmt::format("the split '{}'", split) : "a regression",
                          is_roc  ? "ROC curve"
                          : is_pr ? "precision-recall curve"
                                  : "calibration"),
              any_class ? "it needs finite predictions, and rows of a class as well as others"
                        : fmt::format("its plots are {}", fmt::join(pictures_of(session), ", ")));
}

}  // namespace graphrun::cli
