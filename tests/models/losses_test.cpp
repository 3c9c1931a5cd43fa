// The losses of the first ten training steps of every model, and of every hundredth step of the convex ones, against
// recorded lists. tests/models/losses/ holds them, one loss a line. Those of known starts (zeros, and that of
// mnist_mlp's reference) come from NumPy in float64 (bench/loss_lists.py); of the others, whose start our own random
// numbers draw, from `graphrun models/NAME.json --executor=ref --losses FILE` with the overrides of kKnown. `ref` runs
// only against lists from NumPy: a list that it wrote itself proves nothing about it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "model_runs.h"
#include "support/source_folder.h"

namespace graphrun {
namespace {

const std::string kLists = source_folder() + "/tests/models/losses/";

enum class ListFrom { ref, numpy, numpy_whole };  // numpy_whole: the list spans the whole training, of a convex model

struct Known {
  const char* model;
  Overrides ten_steps;  // what makes a training of ten steps of it
  ListFrom list = ListFrom::ref;
};

const Overrides kTenEpochs = {{"train.epochs", "10"}};
const Overrides kTenBatches = {{"train.epochs", "1"}, {"data.train.range", "[0, 10000]"}};  // of 1000 rows
const Overrides kTenOfDigits = {{"train.epochs", "1"}, {"train.batch", "126"}};
const Overrides kTenthOfStock = {{"train.epochs", "1"}, {"data.source.random.rows", "80000"}, {"train.batch", "5600"}};

Overrides both(Overrides all, const Overrides& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

const Overrides kTenOfGan = {{"train.epochs", "1"}, {"train.batch", "410"}};

const Overrides kTenOfLenet = {{"train.epochs", "1"}, {"train.batch", "20"}, {"data.train.range", "[0, 200]"}};
const Overrides kTenOfForecast = {{"train.epochs", "1"}, {"train.batch", "280"}};

const Known kKnown[] = {{"digits", kTenOfDigits},
                        {"digits_cnn", kTenOfDigits},
                        {"forecast", kTenOfForecast},
                        {"gan", kTenOfGan},
                        {"linear_regression", kTenEpochs, ListFrom::numpy_whole},
                        {"logistic_regression", kTenEpochs, ListFrom::numpy_whole},
                        {"mnist_lenet", kTenOfLenet},
                        {"mnist_logreg", kTenBatches, ListFrom::numpy_whole},
                        {"mnist_mlp", both(kTenBatches, reference_start()), ListFrom::numpy},
                        {"peaks", kTenEpochs},
                        {"realestate_mlp", kTenEpochs},
                        {"realestate_mlp2", kTenEpochs},
                        {"stock", kTenthOfStock},
                        {"xor", kTenEpochs}};

std::vector<double> recorded(const std::string& model) {
  std::istringstream lines(read_file(kLists + model + ".txt"));
  std::vector<double> losses;
  for (double loss = 0; lines >> loss;) losses.push_back(loss);
  EXPECT_TRUE(lines.eof()) << model << ".txt, line " << losses.size() + 1;
  return losses;
}

// The first ten steps, then every hundredth.
std::size_t step_of(std::size_t line) {
  return line < 10 ? line : 100 * (line - 9) - 1;
}

void expect_losses(const std::vector<double>& losses, const std::vector<double>& list) {
  std::size_t line = 0;
  for (; line < list.size() && step_of(line) < losses.size(); ++line)
    ASSERT_NEAR(losses[step_of(line)], list[line], 1e-4 * std::fabs(list[line])) << "step " << step_of(line);
  EXPECT_GE(line, 10u);
}

TEST(Losses, EveryModelHasAList) {
  std::vector<std::string> known;
  for (const Known& k : kKnown) known.push_back(k.model);
  EXPECT_EQ(known, model_names());
}

class FirstTen : public testing::TestWithParam<std::tuple<Known, std::string>> {};

TEST_P(FirstTen, Losses) {
  const auto& [known, executor] = GetParam();
  GRAPHRUN_SKIP_WITHOUT_DATA(known.model, known.ten_steps);
  Session session = open_model(known.model, executor, known.ten_steps);
  const std::vector<double> losses = session.train().losses;
  EXPECT_EQ(losses.size(), 10u);
  expect_losses(losses, recorded(known.model));
}

template <class Param>
std::string name_of_run(const testing::TestParamInfo<Param>& info) {
  return std::string(std::get<0>(info.param).model) + "_" + std::get<1>(info.param);
}

std::vector<std::tuple<Known, std::string>> first_ten_runs() {
  std::vector<std::tuple<Known, std::string>> runs;
  for (const Known& known : kKnown) {
    runs.emplace_back(known, "cpu");
    if (known.list != ListFrom::ref) runs.emplace_back(known, "ref");
  }
  return runs;
}

INSTANTIATE_TEST_SUITE_P(Models, FirstTen, testing::ValuesIn(first_ten_runs()), name_of_run<FirstTen::ParamType>);

class Whole : public testing::TestWithParam<std::tuple<Known, std::string>> {};

TEST_P(Whole, Losses) {
  const auto& [known, executor] = GetParam();
  GRAPHRUN_SKIP_WITHOUT_DATA(known.model);
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  const std::vector<double> list = recorded(known.model);
  // ref takes a minute for all of MNIST's epochs.
  const bool part = std::string(known.model) == "mnist_logreg" && executor == "ref";
  if (std::string(known.model) == "logistic_regression") GRAPHRUN_REF_AT_NIGHT(executor);
  Session session = open_model(known.model, executor, part ? Overrides{{"train.epochs", "2"}} : Overrides{});
  const std::vector<double> losses = session.train().losses;
  EXPECT_EQ(losses.size(), part ? 100 : step_of(list.size() - 1) + 1);
  expect_losses(losses, list);
}

std::vector<Known> convex() {
  std::vector<Known> models;
  std::copy_if(std::begin(kKnown), std::end(kKnown), std::back_inserter(models),
               [](const Known& k) { return k.list == ListFrom::numpy_whole; });
  return models;
}
INSTANTIATE_TEST_SUITE_P(Models, Whole, testing::Combine(testing::ValuesIn(convex()), testing::Values("cpu", "ref")),
                         name_of_run<Whole::ParamType>);

// mnist.json holds figures of another float64 implementation: the first ten losses, the last batch's loss of every
// epoch and the accuracies at the end.
struct MnistFigures {
  explicit MnistFigures(const std::string& training)
      : document(json::parse("mnist.json", read_file(kLists + "mnist.json"))),
        entry(document.root.find(training)->value) {}
  std::vector<double> list(const char* key) const {
    std::vector<double> values;
    for (const json::Value& item : entry.find(key)->value.items) values.push_back(item.real);
    return values;
  }
  double number(const char* key) const { return entry.find(key)->value.real; }
  json::Document document;
  const json::Value& entry;
};

TEST(Mnist, LogisticRegressionFollowsItsReference) {
  GRAPHRUN_SKIP_WITHOUT_DATA("mnist_logreg");
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  const MnistFigures figures("mnist_logreg_30");
  const Trained run = train("mnist_logreg", "cpu");
  const std::vector<double>& losses = run.result.losses;
  const std::vector<double> first = figures.list("first_ten_step_losses"),
                            ends = figures.list("last_batch_loss_per_epoch");
  ASSERT_EQ(first.size(), 10u);
  ASSERT_EQ(ends.size(), 30u);
  ASSERT_EQ(losses.size(), 1500u);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(losses[i], first[i], 1e-4 * first[i]) << "step " << i;
  for (std::size_t i = 0; i < 30; ++i) EXPECT_NEAR(losses[50 * i + 49], ends[i], 1e-4 * ends[i]) << "epoch " << i + 1;
  EXPECT_NEAR(metric(run.validation, "accuracy"), figures.number("validation_accuracy"), 0.0002);
  EXPECT_NEAR(metric(run.test, "accuracy"), figures.number("test_accuracy"), 0.0002);
}

// From the reference's own start, whose path float32 leaves slowly: 0.9701 after 10 epochs and 0.9750 after 20 there.
TEST(Mnist, TheNetworkFollowsItsReference) {
  GRAPHRUN_SKIP_WITHOUT_DATA("mnist_mlp", reference_start());
  GRAPHRUN_SKIP_WHEN_SANITIZED();
  const std::vector<double> first = MnistFigures("mnist_mlp_20").list("first_ten_step_losses");
  const Overrides twenty_epochs = {{"train.epochs", "20"}, {"train.evaluate_every", "10"}};
  Session session = open_model("mnist_mlp", "cpu", both(twenty_epochs, reference_start()));
  std::vector<double> validation;
  const std::vector<double> losses = session
                                         .train([&](const Report& report) {
                                           if (report.validation)
                                             validation.push_back(metric(*report.validation, "accuracy"));
                                         })
                                         .losses;
  ASSERT_EQ(first.size(), 10u);
  ASSERT_EQ(losses.size(), 1000u);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(losses[i], first[i], 1e-4 * first[i]) << "step " << i;
  ASSERT_EQ(validation.size(), 2u);
  EXPECT_GE(validation[0], 0.965);
  EXPECT_NEAR(validation[0], 0.9701, 0.003);
  EXPECT_GE(validation[1], 0.9725);
  EXPECT_NEAR(metric(session.evaluate("test"), "accuracy"), 0.9740, 0.003);
}

}  // namespace
}  // namespace graphrun
