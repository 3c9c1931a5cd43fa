#include "cli/results/score_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "cli/terminal/terminal.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr std::size_t kMaxColumns = 16;  // columns of a matrix or list that fit a terminal
constexpr std::size_t kMaxConfusions = 10;

std::string figure(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.4g}", value);
}

using Rows = std::vector<std::vector<std::string>>;

Rows class_table(const ClassScores& scores) {
  Rows rows = {{"class", "rows", "precision", "recall", "f1", "auc", "average precision"}};
  for (const PerClassScores& one : scores.classes) {
    rows.push_back({printable(one.name), fmt::format("{}", one.rows), figure(one.precision), figure(one.recall),
                    figure(one.f1), figure(one.auc), figure(one.average_precision)});
  }
  if (scores.unseen > 0) rows.push_back({"(unseen)", fmt::format("{}", scores.unseen)});
  for (const auto& [name, mean] : {std::pair{"macro", scores.macro}, {"micro", scores.micro}})
    rows.push_back({name, "", figure(mean.precision), figure(mean.recall), figure(mean.f1)});
  return rows;
}

// "at 0.3" if a threshold other than 1/2 decides about all classes.
std::string at_threshold(const ClassScores& scores) {
  double low = kNoScore, high = kNoScore;
  for (const PerClassScores& one : scores.classes) {
    low = std::fmin(low, one.threshold);
    high = std::fmax(high, one.threshold);
  }
  return std::isnan(low) ? "" : low == high ? fmt::format(" at {:.4g}", low) : " at thresholds";
}

Rows threshold_table(const OutputScores& scores) {
  Rows rows = {{"class", "threshold", "precision", "recall", "f1", "accuracy", "TP", "FP", "FN", "TN"}};
  for (const PerClassScores& one : scores.classes->classes) {
    if (std::isnan(one.threshold)) continue;
    const std::uint64_t tp = one.true_positives, fp = one.predicted - tp, fn = one.rows - tp,
                        tn = scores.rows - one.predicted - fn;
    rows.push_back({printable(one.name), figure(one.threshold), figure(one.precision), figure(one.recall),
                    figure(one.f1), figure(static_cast<double>(tp + tn) / static_cast<double>(scores.rows))});
    for (const std::uint64_t count : {tp, fp, fn, tn}) rows.back().push_back(fmt::format("{}", count));
  }
  return rows;
}

// Precision, recall and F1 at the threshold of a point.
ClassAverages at_point(const CurvePoint& point, const PerClassScores& one) {
  const auto found = static_cast<double>(point.true_positives), all = static_cast<double>(one.rows),
             said = found + static_cast<double>(point.false_positives);
  return {found / said, all > 0 ? found / all : 0, 2 * found / (said + all)};
}

// Thresholds at which a tenth of the rows, two tenths, ... are positive, the one with the best F1, and the one in use.
Rows curve_table(const PerClassScores& one) {
  constexpr std::size_t kParts = 10;
  const std::vector<CurvePoint>& curve = one.curve;
  const auto positive = [](const CurvePoint& point) { return point.true_positives + point.false_positives; };
  const auto best = std::max_element(curve.begin(), curve.end(), [&](const CurvePoint& a, const CurvePoint& b) {
    return at_point(a, one).f1 <= at_point(b, one).f1;
  });
  Rows rows = {{"threshold", "precision", "recall", "f1", "rows above", ""}};
  std::size_t parts = 0;
  for (auto point = curve.begin(); point != curve.end(); ++point) {
    const bool in_use =
        point->threshold >= one.threshold && (point + 1 == curve.end() || (point + 1)->threshold < one.threshold);
    const std::size_t part = positive(*point) * kParts / positive(curve.back());
    if (part == parts && point != best && !in_use && point != curve.begin()) continue;
    parts = part;
    const ClassAverages at = at_point(*point, one);
    rows.push_back(
        {figure(point->threshold), figure(at.precision), figure(at.recall), figure(at.f1),
         fmt::format("{}", positive(*point)),
         fmt::format("{}{}", point == best ? "best f1" : "", in_use ? (point == best ? ", used" : "used") : "")});
  }
  return rows;
}

Rows confusion_table(const ClassScores& scores) {
  const std::size_t n = scores.classes.size();
  Rows rows(1, {""});
  for (const PerClassScores& one : scores.classes) rows[0].push_back(printable(one.name));
  for (std::size_t i = 0; i < n; ++i) {
    rows.push_back({printable(scores.classes[i].name)});
    for (std::size_t k = 0; k < n; ++k) rows.back().push_back(fmt::format("{}", scores.confusion[i * n + k]));
  }
  return rows;
}

Rows confusions_table(const ClassScores& scores) {
  const std::size_t n = scores.classes.size();
  std::vector<std::tuple<std::uint64_t, std::size_t, std::size_t>> confusions;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k)
      if (i != k && scores.confusion[i * n + k] > 0) confusions.emplace_back(scores.confusion[i * n + k], i, k);
  }
  std::stable_sort(confusions.begin(), confusions.end(),
                   [](auto& a, auto& b) { return std::get<0>(a) > std::get<0>(b); });
  if (confusions.size() > kMaxConfusions) confusions.resize(kMaxConfusions);
  Rows rows;
  for (const auto& [count, is, said] : confusions)
    rows.push_back(
        {printable(scores.classes[is].name), "as " + printable(scores.classes[said].name), fmt::format("{}", count)});
  return rows;
}

Rows column_table(const RegressionScores& scores) {
  Rows rows = {{"column", "r2", "mae", "rmse", "mape", "mean residual"}};
  const auto add = [&](std::string name, const ColumnScores& one) {
    rows.push_back({std::move(name), figure(one.r2), figure(one.mae), figure(one.rmse), figure(one.mape),
                    figure(one.mean_residual)});
  };
  for (std::size_t c = 0; c < scores.columns.size(); ++c) add(fmt::format("{}", c), scores.columns[c]);
  add("mean", scores.mean);
  return rows;
}

Rows quantile_table(const RegressionScores& scores) {
  Rows rows(1, {scores.columns.size() > 1 ? "column" : ""});
  for (const auto& quantile : scores.columns[0].quantiles)
    rows[0].push_back(fmt::format("{:g} %", 100 * quantile.first));
  for (std::size_t c = 0; c < scores.columns.size(); ++c) {
    rows.push_back({scores.columns.size() > 1 ? fmt::format("{}", c) : ""});
    for (const auto& quantile : scores.columns[c].quantiles) rows.back().push_back(figure(quantile.second));
  }
  return rows;
}

void write_averages(JsonWriter& json, std::string_view name, const ClassAverages& of) {
  json.key(name).begin_object();
  json.member("precision", of.precision).member("recall", of.recall).member("f1", of.f1).end_object();
}

void write_classes(JsonWriter& json, const ClassScores& scores) {
  json.member("accuracy", scores.accuracy).member("balanced_accuracy", scores.balanced_accuracy);
  if (scores.unseen > 0) json.member("unseen", scores.unseen);
  if (scores.kind == ClassScores::Kind::two) {
    const PerClassScores& one = scores.classes[1];
    json.member("positive", one.name).member("precision", one.precision).member("recall", one.recall);
    json.member("f1", one.f1);
  }
  write_averages(json, "macro", scores.macro);
  write_averages(json, "micro", scores.micro);
  if (!scores.top.empty()) {
    json.key("top_k").begin_object();
    for (const auto& [k, share] : scores.top) json.member(std::to_string(k), share);
    json.end_object();
  }
  json.member("auc", scores.auc).member("average_precision", scores.average_precision);
  json.member("mcc", scores.mcc).member("log_loss", scores.log_loss);
  json.objects("classes", scores.classes, [&](const PerClassScores& one) {
    json.member("class", one.name).member("rows", one.rows).member("predicted", one.predicted);
    json.member("precision", one.precision).member("recall", one.recall).member("f1", one.f1);
    json.member("auc", one.auc).member("average_precision", one.average_precision);
    if (!std::isnan(one.threshold)) json.member("threshold", one.threshold);
    if (one.curve.empty()) return;
    json.objects("thresholds", one.curve, [&](const CurvePoint& point) {
      const ClassAverages at = at_point(point, one);
      json.member("threshold", point.threshold).member("precision", at.precision).member("recall", at.recall);
      json.member("f1", at.f1).member("true_positives", point.true_positives);
      json.member("false_positives", point.false_positives);
    });
  });
  if (scores.confusion.empty()) return;
  const std::size_t n = scores.classes.size();
  json.key("confusion").begin_array();
  for (std::size_t i = 0; i < n; ++i)
    json.value(std::vector<std::uint64_t>(scores.confusion.begin() + static_cast<std::ptrdiff_t>(i * n),
                                          scores.confusion.begin() + static_cast<std::ptrdiff_t>((i + 1) * n)));
  json.end_array();
}

void write_column(JsonWriter& json, const ColumnScores& one) {
  json.member("r2", one.r2).member("mae", one.mae).member("rmse", one.rmse).member("mape", one.mape);
  json.member("mean_residual", one.mean_residual);
}

}  // namespace

std::vector<std::pair<std::string, double>> main_figures(const OutputScores& scores) {
  if (scores.regression) {
    const ColumnScores& mean = scores.regression->mean;
    return {{"r2", mean.r2},
            {"mae", mean.mae},
            {"rmse", mean.rmse},
            {"mape", mean.mape},
            {"mean residual", mean.mean_residual}};
  }
  const ClassScores& of = *scores.classes;
  const std::string at = at_threshold(of);
  std::vector<std::pair<std::string, double>> figures = {{"accuracy" + at, of.accuracy}};
  if (of.kind == ClassScores::Kind::two) {
    const PerClassScores& one = of.classes[1];
    figures.insert(figures.end(), {{"balanced accuracy" + at, of.balanced_accuracy},
                                   {"precision" + at, one.precision},
                                   {"recall" + at, one.recall},
                                   {"f1" + at, one.f1},
                                   {"auc", of.auc},
                                   {"average precision", of.average_precision}});
  } else {
    if (of.kind == ClassScores::Kind::several) figures.emplace_back("balanced accuracy", of.balanced_accuracy);
    figures.insert(figures.end(), {{"precision (macro)" + at, of.macro.precision},
                                   {"recall (macro)" + at, of.macro.recall},
                                   {"f1 (macro)" + at, of.macro.f1}});
    if (of.kind == ClassScores::Kind::labels) figures.emplace_back("f1 (micro)" + at, of.micro.f1);
    for (const auto& [k, share] : of.top) figures.emplace_back(fmt::format("top-{} accuracy", k), share);
    figures.emplace_back("auc (macro)", of.auc);
  }
  if (of.kind != ClassScores::Kind::labels) figures.emplace_back("mcc" + at, of.mcc);
  figures.emplace_back("log loss", of.log_loss);
  return figures;
}

std::vector<ScoreTable> details_of(const OutputScores& scores, std::size_t most) {
  std::vector<ScoreTable> tables;
  if (const auto& of = scores.classes) {
    const bool all = of->classes.size() <= most;
    if (all) tables.push_back({"by class", class_table(*of)});
    if (all && !at_threshold(*of).empty()) tables.push_back({"at the threshold", threshold_table(scores)});
    for (const PerClassScores& one : of->classes) {
      if (all && !one.curve.empty() && !std::isnan(one.threshold))
        tables.push_back({"thresholds of " + printable(one.name), curve_table(one)});
    }
    if (of->confusion.empty()) return tables;
    if (all)
      tables.push_back({"rows: actual, columns: predicted", confusion_table(*of)});
    else
      tables.push_back({"most frequent confusions", confusions_table(*of)});
    return tables;
  }
  const RegressionScores& of = *scores.regression;
  if (of.columns.size() > most) return tables;
  if (of.columns.size() > 1) tables.push_back({"by column", column_table(of)});
  if (!of.columns[0].quantiles.empty()) tables.push_back({"quantiles of predicted - actual", quantile_table(of)});
  return tables;
}

std::string details_text(const OutputScores& scores, std::string_view split) {
  std::string text;
  for (const ScoreTable& table : details_of(scores, kMaxColumns)) {
    const std::string heading = fmt::format("{}, {}: {}", split, printable(scores.output), table.title);
    text += "\n" + paint(stdout, Style::bold, heading) + "\n" + text_table(table.rows);
  }
  return text;
}

void write_scores(JsonWriter& json, const OutputScores& scores) {
  json.member("target", scores.target).member("rows", scores.rows);
  if (scores.classes) return write_classes(json, *scores.classes);
  write_column(json, scores.regression->mean);
  json.objects("columns", scores.regression->columns, [&](const ColumnScores& one) {
    write_column(json, one);
    json.key("residual_quantiles").begin_object();
    for (const auto& [share, value] : one.quantiles) json.member(fmt::format("{:g}", share), value);
    json.end_object();
  });
}

}  // namespace graphrun::cli
