// Scores of splits: figures worked out by hand, and what there is none of. Beside scikit-learn: tests/reference.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "graphrun/error.h"
#include "graphrun/session.h"
#include "session/scores/class_counter.h"
#include "session/scores/ranking.h"
#include "session/scores/residuals.h"
#include "support/source_folder.h"

namespace graphrun::test {
namespace {

ClassOutput logits(ClassOutput::Numbers numbers) {
  return {true, numbers, {}};
}

TEST(Scores, EqualScoresMoveTogetherAlongACurve) {
  std::vector<std::pair<double, bool>> rows = {{0.9, true}, {0.5, true}, {0.5, false}, {0.1, false}};
  const CurveAreas areas = curve_areas(rows);
  EXPECT_DOUBLE_EQ(areas.auc, 0.875);  // 3 pairs right, one equal, of 4
  EXPECT_DOUBLE_EQ(areas.average_precision, 0.5 * 1 + 0.5 * (2.0 / 3.0));
  std::vector<std::pair<double, bool>> one = {{0.9, true}, {0.5, true}};
  EXPECT_TRUE(std::isnan(curve_areas(one).auc));
  EXPECT_DOUBLE_EQ(curve_areas(one).average_precision, 1);
}

// Four rows: 0.8 and 0.35 are positive, 0.4 and 0.1 are not.
TEST(Scores, AThresholdFollowsFromTheCurve) {
  std::vector<std::pair<double, bool>> rows = {{0.1, false}, {0.4, false}, {0.35, true}, {0.8, true}};
  std::vector<CurvePoint> curve;
  curve_areas(rows, &curve);
  ASSERT_EQ(curve.size(), 4u);
  EXPECT_EQ(curve[2].threshold, 0.35);
  EXPECT_EQ(curve[2].true_positives, 2u);
  EXPECT_EQ(curve[2].false_positives, 1u);
  using By = ThresholdRule::By;
  EXPECT_EQ(threshold_by({By::value, 0.3}, curve), 0.3);
  EXPECT_NEAR(threshold_by({By::f1}, curve), 0.35, 3e-7);  // F1 is 2/3, 1/2, 4/5, 2/3
  EXPECT_NEAR(threshold_by({By::recall, 0.5}, curve), 0.8, 3e-7);
  EXPECT_NEAR(threshold_by({By::recall, 0.51}, curve), 0.35, 3e-7);
  EXPECT_NEAR(threshold_by({By::precision, 2.0 / 3}, curve), 0.35, 3e-7);
  EXPECT_NEAR(threshold_by({By::precision, 0.67}, curve), 0.8, 3e-7);
  EXPECT_NEAR(threshold_by({By::cost, 0, {0, 1, 5, 0}}, curve), 0.35, 3e-7);
  EXPECT_NEAR(threshold_by({By::cost, 0, {0, 5, 1, 0}}, curve), 0.8, 3e-7);
  EXPECT_GT(threshold_by({By::cost, 0, {0, 9, 1, 9}}, curve), 0.8) << "no row";
  const std::vector<CurvePoint> wrong = {{0.9, 0, 1}, {0.2, 1, 1}};
  EXPECT_NEAR(threshold_by({By::precision, 0.9}, wrong), 0.2, 3e-7) << "the largest precision, where none is enough";
  EXPECT_EQ(threshold_by({By::f1}, {{0.9, 0, 2}}), 0.5) << "no positive row";
}

// A row at exactly the threshold is positive, in logits as in probabilities; at 1/2 it is not, without one.
TEST(Scores, AThresholdDecides) {
  ClassOutput single = logits(ClassOutput::Numbers::sigmoid_logits),
              pair = logits(ClassOutput::Numbers::softmax_logits);
  const std::vector<float> z = {1.25f}, both = {0.5f, 1.75f}, zero = {0};
  EXPECT_EQ(single.class_of(zero), 0u);
  single.thresholds = {0.5};
  EXPECT_EQ(single.class_of(zero), 1u);
  double p = 0;
  single.probabilities(z, {&p, 1});
  EXPECT_NEAR(p, 0.7772998611746911, 1e-15);
  single.thresholds = {p};
  EXPECT_EQ(single.class_of(z), 1u);
  single.thresholds = {std::nextafter(p, 1)};
  EXPECT_EQ(single.class_of(z), 0u);
  std::vector<double> all(2);
  pair.probabilities(both, all);
  EXPECT_NEAR(all[1], p, 1e-15);
  pair.thresholds = {all[1]};
  EXPECT_EQ(pair.class_of(both), 1u);
  pair.thresholds = {std::nextafter(all[1], 1)};
  EXPECT_EQ(pair.class_of(both), 0u);

  const HostTensor truth(Shape{4, 1}, std::vector<float>{0, 0, 1, 1});
  ClassOutput plain = logits(ClassOutput::Numbers::plain);
  plain.thresholds = {0.25};
  ClassCounter counter(plain, truth, 1);
  counter.add(std::vector<float>{0.125f, 0.375f, 0.25f, 0.75f});
  const ClassScores scores = counter.scores(true);
  EXPECT_EQ(scores.confusion, (std::vector<std::uint64_t>{1, 1, 0, 2}));
  EXPECT_EQ(scores.classes[1].threshold, 0.25);
  EXPECT_TRUE(scores.classes[0].curve.empty());
  EXPECT_EQ(scores.classes[1].curve.size(), 4u);
}

TEST(Scores, TwoClassesByTheSecond) {
  const HostTensor truth(Shape{6, 1}, std::vector<float>{1, 1, 1, 0, 0, 0});
  ClassCounter counter(logits(ClassOutput::Numbers::sigmoid_logits), truth, 1);
  counter.add(std::vector<float>{2, -1, -1, -2});
  counter.add(std::vector<float>{-2, 3});
  const ClassScores scores = counter.scores();
  EXPECT_EQ(scores.kind, ClassScores::Kind::two);
  EXPECT_EQ(scores.confusion, (std::vector<std::uint64_t>{2, 1, 2, 1}));
  EXPECT_DOUBLE_EQ(scores.accuracy, 0.5);
  EXPECT_DOUBLE_EQ(scores.classes[1].precision, 0.5);
  EXPECT_DOUBLE_EQ(scores.classes[1].recall, 1.0 / 3);
  EXPECT_DOUBLE_EQ(scores.classes[1].f1, 0.4);
  EXPECT_DOUBLE_EQ(scores.balanced_accuracy, 0.5);
  EXPECT_EQ(scores.classes[0].name, "0");
}

TEST(Scores, AClassThatNoRowIsOfHasNoCurveAndDoesNotCount) {
  const HostTensor truth(Shape{3, 3}, std::vector<float>{1, 0, 0, 0, 1, 0, 1, 0, 0});
  ClassCounter counter(logits(ClassOutput::Numbers::softmax_logits), truth, 3);
  counter.add(std::vector<float>{3, 1, 0, 1, 3, 0, 3, 1, 0});
  const ClassScores scores = counter.scores();
  EXPECT_TRUE(std::isnan(scores.classes[2].auc));
  EXPECT_DOUBLE_EQ(scores.auc, 1);
  EXPECT_DOUBLE_EQ(scores.macro.recall, 1);
  EXPECT_DOUBLE_EQ(scores.mcc, 1);
}

TEST(Scores, NumbersThatAreNoProbabilitiesHaveNoLogLoss) {
  const HostTensor truth(Shape{2, 1}, std::vector<float>{1, 0});
  ClassCounter counter(logits(ClassOutput::Numbers::plain), truth, 1);
  counter.add(std::vector<float>{1.5f, 0});
  EXPECT_TRUE(std::isnan(counter.scores().log_loss));
  EXPECT_DOUBLE_EQ(counter.scores().accuracy, 1);
}

TEST(Scores, RowsOfSeveralClassesAreLabels) {
  const HostTensor truth(Shape{2, 3}, std::vector<float>{1, 1, 0, 0, 0, 0});
  ClassCounter counter(logits(ClassOutput::Numbers::sigmoid_logits), truth, 3);
  counter.add(std::vector<float>{1, -1, -1, -1, -1, -1});
  const ClassScores scores = counter.scores();
  EXPECT_EQ(scores.kind, ClassScores::Kind::labels);
  EXPECT_TRUE(scores.confusion.empty());
  EXPECT_DOUBLE_EQ(scores.accuracy, 0.5);
  EXPECT_DOUBLE_EQ(scores.micro.recall, 0.5);
}

TEST(Scores, OfNumbersTheirResiduals) {
  Residuals residuals(4, 1);
  residuals.add(std::vector<double>{1, 3}, std::vector<double>{1, 2});
  residuals.add(std::vector<double>{3, 2}, std::vector<double>{3, 4});
  const ColumnScores one = residuals.scores().columns.at(0);
  EXPECT_DOUBLE_EQ(one.mae, 0.75);
  EXPECT_DOUBLE_EQ(one.rmse, std::sqrt(5.0 / 4));
  EXPECT_DOUBLE_EQ(one.r2, 0);
  EXPECT_DOUBLE_EQ(one.mape, 0.25);
  EXPECT_DOUBLE_EQ(one.mean_residual, -0.25);
  EXPECT_EQ(one.quantiles.front(), (std::pair<double, double>{0, -2}));
  EXPECT_EQ(one.quantiles[3], (std::pair<double, double>{0.5, 0}));
}

TEST(Scores, OfATargetThatNeverChangesR2IsZeroAndSharesOfZeroAreNone) {
  Residuals residuals(2, 2);
  residuals.add(std::vector<double>{1, 7, 2, 8}, std::vector<double>{0, 7, 2, 7});
  const RegressionScores scores = residuals.scores();
  EXPECT_TRUE(std::isnan(scores.columns[0].mape));
  EXPECT_EQ(scores.columns[1].r2, 0);
  EXPECT_DOUBLE_EQ(scores.mean.r2, 0.25) << "the mean of 0.5 and 0";
  EXPECT_FALSE(std::isnan(scores.columns[1].mape));
}

std::vector<OutputScores> scores_of(const std::string& model, const std::string& batch, const std::string& split) {
  LoadOptions options;
  options.overrides = {{"train.epochs", "3"}, {"train.batch", batch}, {"train.optimizer", R"({"sgd": {"lr": 0}})"}};
  Session session(load_model(source_folder() + "/models/" + model + ".json", options));
  session.train();
  return session.scores(split);
}

TEST(Scores, DoNotDependOnTheBatch) {
  for (const char* model : {"logistic_regression", "digits", "realestate_mlp"}) {
    const OutputScores all = scores_of(model, "all", "train").at(0), some = scores_of(model, "17", "train").at(0);
    ASSERT_EQ(all.rows, some.rows);
    if (all.classes) {
      EXPECT_EQ(all.classes->confusion, some.classes->confusion) << model;
      EXPECT_NEAR(all.classes->auc, some.classes->auc, 1e-9) << model;
      EXPECT_NEAR(all.classes->log_loss, some.classes->log_loss, 1e-6) << model;
    } else {
      EXPECT_NEAR(all.regression->mean.rmse, some.regression->mean.rmse, 1e-6 * all.regression->mean.rmse) << model;
    }
  }
}

TEST(Scores, OfOutputsThatAreNotFiniteThereAreNone) {
  Session session(load_model(source_folder() + "/models/logistic_regression.json"));
  HostTensor b = session.read("b");
  b.elements<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  session.write("b", b);
  EXPECT_TRUE(session.scores("test").empty());
}

TEST(Scores, OfASplitThatTheModelHas) {
  Session session(load_model(source_folder() + "/models/xor.json"));
  EXPECT_EQ(session.scores("train").size(), 1u);
  EXPECT_THROW(session.scores("tests"), Error);
  EXPECT_FALSE(session.scores("train", -1).has_value()) << "there was no time";
}

}  // namespace
}  // namespace graphrun::test
