// Metrics of `train` and `eval`: in columns, by class, and as JSON.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"

namespace graphrun::testing {
namespace {

class Scores : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    std::string rows = "a,b,kind\n";
    for (int i = 0; i < 60; ++i) {
      const int a = i % 7, b = i % 5;
      rows += std::to_string(a) + "," + std::to_string(b) + ",";
      rows += a + b > 8 ? "rare\n" : a > 3 ? "red\n" : "dark blue\n";
    }
    file("table.csv", rows);
    kinds_ = file("kinds.json", R"json({"format": 1, "name": "kinds",
      "data": {"source": {"csv": "table.csv", "x": ["a", "b"], "y": "kind"}, "split": [0.6, 0.2, 0.2],
               "transform": {"y": [{"one_hot": ["dark blue", "red", "rare"]}]}},
      "inputs": {"x": ["batch", 2], "y": ["batch", 3]},
      "graph": [{"name": "out", "op": "dense", "inputs": ["x"], "units": 3},
                "loss = mean(softmax_cross_entropy(out, y))"],
      "outputs": {"out": "y"},
      "train": {"minimize": "loss", "metrics": ["accuracy"], "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 200}})json");
    weights_ = (folder_ / "w.npz").string();
    trained_ = graphrun({kinds_, "--save-weights", weights_, "--json"});
    ASSERT_EQ(trained_.code, 0) << trained_.err;
  }
  std::string kinds_, weights_;
  Outcome trained_;
};

// The same rows as a split of the model and as a file of their own.
TEST_F(Scores, OfOtherRowsAreInTheUnitOfTheTarget) {
  file("train.csv", "a,price\n1,3\n2,8\n3,20\n4,60\n");
  file("test.csv", "a,price\n2,9\n5,170\n");
  const std::string model = file("log.json", R"json({"format": 1, "name": "log",
      "data": {"train": {"csv": "train.csv", "x": ["a"], "y": ["price"]},
               "test": {"csv": "test.csv", "x": ["a"], "y": ["price"]}, "transform": {"y": ["log", "standardize"]}},
      "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
      "graph": [{"name": "p", "op": "dense", "inputs": ["x"], "units": 1}, "loss = mean(square(p - y))"],
      "outputs": {"p": "y"},
      "train": {"minimize": "loss", "metrics": ["mse"], "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 50}})json");
  const std::string weights = (folder_ / "log.npz").string();
  const Outcome trained = graphrun({model, "-q", "--json", "--save-weights", weights});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome other =
      graphrun({"eval", model, "--weights", weights, "-q", "--json", "--data", (folder_ / "test.csv").string()});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_EQ(Json::parse(other.out)["data"], Json::parse(trained.out)["test"]);
}

constexpr const char* kWide = R"json({"format": 1, "name": "wide",
      "data": {"train": {"csv": "t.csv", "x": ["a", "b"], "y": ["u", "v"]}},
      "inputs": {"x": ["batch", 2], "y": ["batch", 2]},
      "graph": ["o = dense(x, units=2)", "p = sigmoid(o)", "loss = mean(LOSS)"], "outputs": {"OUT": "y"},
      "train": {"minimize": "loss", "metrics": [METRICS], "optimizer": {"adam": {"lr": 0.05}}, "epochs": 20}})json";

std::string with(std::string text, std::vector<std::pair<std::string, std::string>> words) {
  for (const auto& [word, other] : words) text.replace(text.find(word), word.size(), other);
  return text;
}

class Thresholds : public Scores {
 protected:
  void SetUp() override {
    Cli::SetUp();
    std::string rows = "a,b,sort,y\n";
    for (int i = 0; i < 90; ++i) {
      const int a = i % 7, b = i % 5;
      rows += std::to_string(a) + "," + std::to_string(b) + (a + b > 7 || i % 11 == 0 ? ",bad,1\n" : ",good,0\n");
    }
    file("sorts.csv", rows);
    sorts_ = file("sorts.json", R"json({"format": 1, "name": "sorts",
      "data": {"source": {"csv": "sorts.csv", "x": ["a", "b"], "y": "sort"}, "split": [0.5, 0.25, 0.25],
               "transform": {"y": [{"classes": ["good", "bad"]}]}},
      "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
      "graph": [{"name": "out", "op": "dense", "inputs": ["x"], "units": 1},
                "loss = mean(sigmoid_cross_entropy(out, y))"],
      "outputs": {"out": "y"},
      "train": {"minimize": "loss", "metrics": ["accuracy", "f1"], "optimizer": {"adam": {"lr": 0.05}}, "epochs": 30}})json");
    train(sorts_, {});
  }
  void train(const std::string& model, std::vector<std::string> more) {
    weights_ = (folder_ / "sorts.safetensors").string();
    more.insert(more.begin(), {model, "--save-weights", weights_, "--quiet"});
    trained_ = graphrun(more);
    ASSERT_EQ(trained_.code, 0) << trained_.err;
  }
  std::string sorts_;
};

TEST_F(Thresholds, AreOfEval) {
  const Outcome text = graphrun({"eval", weights_, "--threshold", "0.25"});
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* part : {"\naccuracy ", "\naccuracy at 0.25 ", "\nf1 at 0.25 ", "\nmcc at 0.25 ", "\nauc ",
                           "test, out: at the threshold\nclass  threshold", "test, out: thresholds of bad\nthreshold"})
    EXPECT_TRUE(has(text.out, part)) << part << "\n" << text.out;
  for (const std::string& line : lines(text.out)) EXPECT_LE(line.size(), 80u) << line;
  const Json plain = Json::parse(graphrun({"eval", weights_, "--json"}).out);
  const Json at = Json::parse(graphrun({"eval", weights_, "--json", "--threshold=0.25"}).out);
  EXPECT_EQ(at["validation"], plain["validation"]) << "the model's metrics do not depend on it";
  const Json &one = at["scores"]["test"]["out"]["classes"][1], &other = plain["scores"]["test"]["out"]["classes"][1];
  EXPECT_EQ(one["threshold"], 0.25);
  EXPECT_FALSE(other.contains("threshold") || other.contains("thresholds"));
  EXPECT_GT(one["recall"].get<double>(), other["recall"].get<double>());
  EXPECT_EQ(one["thresholds"].back()["recall"], 1.0);
  EXPECT_EQ(at["scores"]["test"]["out"]["confusion"][1][1].get<double>(),
            one["recall"].get<double>() * one["rows"].get<double>());
  // The best one of the validation split.
  const Outcome best = graphrun({"eval", weights_, "--json", "--threshold=f1"});
  EXPECT_TRUE(has(best.err, "out: the best F1 on the split 'validation' is at the threshold 0.")) << best.err;
  const Json chosen = Json::parse(best.out)["scores"]["validation"]["out"]["classes"][1];
  for (const Json& point : chosen["thresholds"]) EXPECT_LE(point["f1"].get<double>(), chosen["f1"].get<double>());
}

// A category as a class number next to one as several numbers.
TEST_F(Thresholds, ImportanceNamesEachKindOfCategory) {
  std::string table = "sex,port,age,y\n";
  for (int i = 0; i < 24; ++i)
    table += std::string(i % 2 == 0 ? "male" : "female") +
             (i % 3 == 0   ? ",Bern,"
              : i % 3 == 1 ? ",Ulm,"
                           : ",Basel,") +
             std::to_string(i * 7 % 31) + "," + std::to_string(i * 3 % 17) + ".5\n";
  const std::string csv = file("kinds.csv", table), model = (folder_ / "kinds.json").string(),
                    weights = (folder_ / "kinds.npz").string();
  ASSERT_EQ(graphrun({"init", csv, "--label", "y", "-o", model}).code, 0);
  ASSERT_EQ(graphrun({model, "--epochs=2", "--save-weights", weights}).code, 0);
  const Outcome outcome = graphrun({"eval", model, "--weights", weights, "--importance=loss", "--json"});
  const Json results = Json::parse(outcome.out);
  std::set<std::string> columns;
  for (const Json& one : results["importance"]["columns"]) columns.insert(one["column"]);
  EXPECT_EQ(columns, (std::set<std::string>{"sex", "port", "age"})) << outcome.out;
}

TEST_F(Thresholds, ImportanceNeedsRowsToShuffleAndAMetricWithAValue) {
  const std::vector<std::string> rows = lines(test::content_of((folder_ / "sorts.csv").string()));
  const std::string one = file("one.csv", rows[0] + "\n" + rows[1] + "\n");
  const Outcome single = graphrun({"eval", weights_, "--data", one, "--importance", "loss"});
  EXPECT_EQ(single.code, 2);
  EXPECT_TRUE(has(single.err, "the split 'data' has one row; importance needs two rows or more")) << single.err;
  const std::string twice = file("twice.csv", rows[0] + "\n" + rows[1] + "\n" + rows[1] + "\n");
  const Outcome alike =
      graphrun({"eval", weights_, "--data", twice, "--importance=auc", "--set=train.metrics=[\"auc\"]"});
  EXPECT_TRUE(has(alike.err, "the metric 'auc' has no value on the 2 rows of 'data'")) << alike.err;
  EXPECT_TRUE(has(alike.err, "auc needs rows of both classes")) << alike.err;
  EXPECT_TRUE(has(graphrun({"eval", weights_, "--importance=accuracy"}).out, "decrease if a column is shuffled"));
  EXPECT_TRUE(has(graphrun({"eval", weights_, "--importance=loss"}).out, "increase if a column is shuffled"));
  const Outcome unknown = graphrun({"eval", weights_, "--importance=auc"});
  EXPECT_TRUE(has(unknown.err, "--set train.metrics='[\"auc\"]' adds another")) << unknown.err;
}

// The weights store what training chose; eval and predict use it.
TEST_F(Thresholds, AreChosenWhenTrainingEnds) {
  const std::string rule = R"(train.threshold={"by": "f1"})";
  const Json best = Json::parse(graphrun({"eval", weights_, "--json", "--threshold=f1"}).out);
  train(sorts_, {"--set", rule});
  const Json one = best["scores"]["validation"]["out"]["classes"][1];
  EXPECT_TRUE(has(trained_.out, "threshold ")) << trained_.out;
  EXPECT_TRUE(has(trained_.out, ", chosen on validation")) << trained_.out;
  const Json kept =
      Json::parse(graphrun({"eval", weights_, "--json"}).out)["scores"]["validation"]["out"]["classes"][1];
  EXPECT_EQ(kept["threshold"], one["threshold"]);
  EXPECT_EQ(kept["f1"], one["f1"]);
  EXPECT_FALSE(kept.contains("thresholds"));
  const double threshold = kept["threshold"];
  EXPECT_NE(threshold, 0.5);
  for (const std::string& flag : {std::string("--probabilities"), std::string("--labels")}) {
    std::size_t between = 0;
    const Json said =
        Json::parse(graphrun({"predict", weights_, (folder_ / "sorts.csv").string(), "--json", flag}).out);
    for (const Json& row : said["predictions"]) {
      const double value = row[1], p = flag == "--labels" ? 1 / (1 + std::exp(-value)) : value;
      EXPECT_EQ(row[0], p >= threshold ? "bad" : "good") << p;
      between += (p >= threshold) != (p > 0.5) ? 1 : 0;
    }
    EXPECT_GT(between, 0u) << "rows that the threshold decides about";
  }
  const std::string npz = (folder_ / "sorts.npz").string();
  ASSERT_EQ(graphrun({sorts_, "--quiet", "--set", rule, "--save-weights", npz}).code, 0);
  const std::string listed = graphrun({"show", "--weights", npz}).out;
  EXPECT_TRUE(has(listed, "out:threshold")) << listed;
  EXPECT_TRUE(has(graphrun({"eval", sorts_, "--weights", npz}).out, "accuracy at 0."));
  // A run without a rule does not keep it.
  const std::string other = (folder_ / "other.npz").string();
  ASSERT_EQ(graphrun({sorts_, "--quiet", "--weights", npz, "--save-weights", other}).code, 0);
  EXPECT_FALSE(has(graphrun({"eval", sorts_, "--weights", other}).out, "accuracy at"));
}

TEST_F(Thresholds, FollowTheRule) {
  const auto by = [&](const std::string& rule) {
    train(sorts_, {"--set", "train.threshold={\"by\": " + rule + "}"});
    return Json::parse(graphrun({"eval", weights_, "--json"}).out)["scores"]["validation"]["out"]["classes"][1];
  };
  const Json recall = by(R"({"recall": 1})"), precision = by(R"({"precision": 0.3})");
  EXPECT_EQ(recall["recall"], 1.0);
  EXPECT_GE(precision["precision"], 0.3);
  EXPECT_LE(recall["threshold"], precision["threshold"]);
  EXPECT_GE(by(R"({"cost": [[0, 1], [99, 0]]})")["recall"], by(R"({"cost": [[0, 99], [1, 0]]})")["recall"]);
}

TEST_F(Thresholds, OfAModelAreRejected) {
  const auto rejected = [&](const std::string& threshold, const std::vector<std::string>& says) {
    expect_rejected(graphrun({"check", sorts_, "--set", "train.threshold=" + threshold}), says);
  };
  rejected(R"({"by": "f2"})", {"unknown rule for a threshold", R"(for instance "f1", {"recall": 0.9})"});
  rejected("{}", {R"("threshold": {"by": "f1"})"});
  rejected(R"({"by": {"recall": 1.5}})", {"must be > 0 and <= 1, got 1.5"});
  rejected(R"({"by": {"recall": 0.5, "cost": 1}})", {"unknown rule for a threshold"});
  rejected(R"({"by": {"cost": [[0, 1], [5]]}})", {"two rows, each of two numbers"});
  rejected(R"({"by": {"cost": [[0, 1], [5, "a"]]}})", {"number"});
  const std::string rule = R"(train.threshold={"by": "f1"})";
  expect_rejected(graphrun({sorts_, "--set", rule, "--set", "data.split=[0.8, 0, 0.2]"}),
                  {"threshold goes by the split 'validation', which is not there", "[0.8, 0.2] if the source has"});
  Scores::SetUp();
  expect_rejected(graphrun({kinds_, "--set", rule}), {"threshold: no output has two classes or several labels"});
}

TEST_F(Thresholds, DecideAboutEachLabel) {
  std::string rows = "a,b,u,v\n";
  for (int i = 0; i < 60; ++i) {
    const int a = i % 7, b = i % 5;
    rows += std::to_string(a) + "," + std::to_string(b) + (a > 4 ? ",1" : ",0") + (b > 2 ? ",1\n" : ",0\n");
  }
  file("t.csv", rows);
  std::string wide = with(kWide, {{"LOSS", "sigmoid_cross_entropy(o, y)"}, {"OUT", "o"}, {"METRICS", ""}});
  wide = with(wide, {{R"("train": {"csv": "t.csv", "x": ["a", "b"], "y": ["u", "v"]})",
                      R"("source": {"csv": "t.csv", "x": ["a", "b"], "y": ["u", "v"]}, "split": [0.5, 0.5, 0])"},
                     {"\"epochs\": 20", R"("epochs": 60, "threshold": {"by": "f1"})"}});
  const std::string path_of_wide = file("wide.json", wide);
  train(path_of_wide, {});
  const Json scores = Json::parse(graphrun({"eval", weights_, "--json"}).out)["scores"]["validation"]["o"];
  EXPECT_EQ(scores["classes"][0]["class"], "u");
  EXPECT_TRUE(scores["classes"][1].contains("threshold"));
  const std::string data = file("new.csv", "a,b\n6,4\n0,4\n6,0\n0,0\n");
  const Outcome text = graphrun({"predict", weights_, data, "--labels"});
  const std::vector<std::string> lines_of = lines(text.out);
  ASSERT_EQ(lines_of.size(), 5u) << text.out << text.err;
  EXPECT_EQ(lines_of[0], "y,o.u,o.v");
  EXPECT_TRUE(lines_of[1].starts_with("u;v,") && lines_of[2].starts_with("v,")) << text.out;
  EXPECT_TRUE(lines_of[3].starts_with("u,") && lines_of[4].starts_with(",")) << text.out;
  const Json said = Json::parse(graphrun({"predict", weights_, data, "--labels", "--json"}).out)["predictions"];
  EXPECT_EQ(said[0][0], (Json{"u", "v"}));
  EXPECT_EQ(said[3][0], Json::array());
  EXPECT_FALSE(has(graphrun({"predict", weights_, data}).out, "y,")) << "only on request";
  const auto log_loss = [&](const std::string& output) {
    const Outcome eval = graphrun({"eval", path_of_wide, "--weights", weights_, "--set",
                                   "outputs={\"" + output + "\": \"y\"}", "--set", "train.threshold=null", "--json"});
    return Json::parse(eval.out)["scores"]["validation"][output]["log_loss"].get<double>();
  };
  EXPECT_NEAR(log_loss("p"), log_loss("o"), 1e-6) << "of probabilities and of logits";
}

TEST_F(Thresholds, AreRejected) {
  for (const char* wrong : {"2", "-0.1", "nan", "best"})
    expect_rejected(graphrun({"eval", weights_, std::string("--threshold=") + wrong}),
                    {"--threshold must be f1 or a number from 0 to 1"});
  Scores::SetUp();
  expect_rejected(graphrun({"eval", kinds_, "--weights", weights_, "--threshold=f1"}),
                  {"--threshold: no output has two classes or several labels"});
}

// Each name has one definition everywhere, that of scikit-learn.
TEST_F(Scores, AreTheMetricsOfTheSameNames) {
  file("t.csv", "a,b,u,v\n1,2,0,1\n2,0,1,1\n3,1,1,0\n4,1,0,0\n5,3,1,1\n0,2,0,0\n1,5,0,1\n2,2,1,0\n");
  const auto both = [&](const std::string& loss, const std::string& out, const std::string& metrics) {
    const Outcome outcome = graphrun(
        {file("wide.json", with(kWide, {{"LOSS", loss}, {"OUT", out}, {"METRICS", metrics}})), "--json", "--quiet"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const Json result = Json::parse(outcome.out);
    for (const auto& [name, value] : result["train"].items()) {
      if (name != "loss") {
        EXPECT_EQ(value, result["scores"]["train"][out][name]) << name;
      }
    }
    return result["train"];
  };
  both("sigmoid_cross_entropy(o, y)", "p", R"("accuracy", "auc", "log_loss")");  // from labels, not from an argmax
  both("sigmoid_cross_entropy(o, y)", "o", R"("accuracy")");                     // from logits
  const Json numbers = both("square(o - y)", "o", R"("r2", "rmse", "mape", "mean_residual")");
  EXPECT_TRUE(numbers["mape"].is_null()) << "targets are zero";
}

TEST_F(Scores, AcceptTheOldNameOfMcc) {
  const Outcome outcome =
      graphrun({"eval", kinds_, "--weights", weights_, "--json", "--set", R"(train.metrics=["mcc", "matthews"])"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result["test"]["mcc"], result["scores"]["test"]["out"]["mcc"]);
  EXPECT_EQ(result["test"]["matthews"], result["test"]["mcc"]);
}

TEST_F(Scores, AreMonitorsAndColumnsOfTheLog) {
  const std::string log = (folder_ / "log.csv").string();
  const Outcome outcome = graphrun({kinds_, "--json", "--quiet", "--log", log, "--set", "train.evaluate_every=10",
                                    "--set", R"(train.early_stopping={"monitor": "f1_macro", "patience": 3})", "--set",
                                    R"(train.metrics=["recall"])"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result["early_stopping"]["monitor"], "f1_macro");
  EXPECT_EQ(result["early_stopping"]["best"]["value"], result["scores"]["validation"]["out"]["macro"]["f1"]);
  EXPECT_EQ(result["test"]["recall"], result["scores"]["test"]["out"]["macro"]["recall"]);
  std::ifstream file(log);
  std::string head;
  std::getline(file, head);
  EXPECT_TRUE(has(head, "validation_recall,validation_f1_macro")) << head;
}

TEST_F(Scores, OutputsInOrderMayMeetClassesOfAnotherOne) {
  const std::string model = file("order.json", R"js({"format": 1, "name": "order",
    "data": {"train": {"inline": {"x": [[1], [2], [3]], "t": [[1], [0], [1]], "k": [0, 1, 2]}}},
    "inputs": {"x": ["batch", 1], "t": ["batch", 1], "k": {"shape": ["batch"], "dtype": "i32"}},
    "graph": [{"name": "z", "op": "dense", "inputs": ["x"], "units": 3}, "a = x * 2", "b = x * 3",
              "loss = mean(softmax_cross_entropy(z, k)) + mse(a, t)"],
    "outputs": ["a", "b"],
    "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 2}})js");
  const Outcome outcome = graphrun({model, "--json", "--quiet"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(Json::parse(outcome.out)["scores"]["train"].contains("b")) << "one column has no class 2";
}

TEST_F(Scores, RejectMetricsThatThereAreNoneOf) {
  const auto rejected = [&](const std::string& metrics, const std::string& graph, const std::string& says) {
    const Outcome outcome =
        graphrun({kinds_, "--set", "train.metrics=[" + metrics + "]", "--set", "graph=[" + graph + "]"});
    expect_rejected(outcome, {says});
  };
  const std::string graph = R"json("out = dense(x, units=3)", "loss = mean(softmax_cross_entropy(out, y))")json";
  rejected(R"("mape")", graph, "mape needs an output with a target of numbers");
  rejected(R"("recal")", graph, "recall");
  rejected(R"("f1")", graph + R"json(, "f1 = mean(out)")json", "f1 is the name of a built-in metric");
}

TEST_F(Scores, AreOfTargetsWithAColumnForEachOfTheOutput) {
  file("t.csv", "a,b,u,v\n1,2,0,1\n2,0,1,1\n");
  const std::string wide = with(kWide, {{"LOSS", "square(o - y)"}, {"OUT", "o"}, {"METRICS", ""}, {", \"v\"]", "]"}});
  expect_rejected(graphrun({file("narrow.json", with(wide, {{R"("y": ["batch", 2])", R"("y": ["batch", 1])"}}))}),
                  {"the target y f32(batch, 1) has fewer columns than its output o f32(batch, 2)"});
}

TEST_F(Scores, AreWholeInJson) {
  const Json result = Json::parse(trained_.out);
  for (const char* split : {"train", "validation", "test"}) {
    const Json& scores = result["scores"][split]["out"];
    EXPECT_EQ(scores["target"], "y");
    EXPECT_EQ(scores["classes"][0]["class"], "dark blue");
    EXPECT_NEAR(scores["accuracy"].get<double>(), result[split]["accuracy"].get<double>(), 1e-6);
    EXPECT_NEAR(scores["log_loss"].get<double>(), result[split]["loss"].get<double>(), 1e-6);
    std::uint64_t rows = 0;
    for (const Json& row : scores["confusion"])
      for (const Json& count : row) rows += count.get<std::uint64_t>();
    EXPECT_EQ(rows, scores["rows"].get<std::uint64_t>());
    EXPECT_TRUE(scores.contains("top_k"));
  }
}

// As scikit-learn does: a class that is never predicted.
TEST_F(Scores, OfUnseenClassesAreMissesIfAsked) {
  const std::string known = "a,b,kind\n6,4,rare\n0,0,dark blue\n6,0,red\n0,1,dark blue\n";
  const std::string first = file("known.csv", known), other = file("other.csv", known + "6,4,new\n0,0,newer\n");
  const auto eval = [&](const std::string& data, bool asked) {
    std::vector<std::string> words = {"eval", kinds_, "--weights", weights_, "--data", data, "--json"};
    if (asked) words.push_back("--count-unseen");
    return graphrun(words);
  };
  expect_rejected(eval(other, false), {"'new' is not one of the categories"});
  const Json all = Json::parse(eval(other, true).out), own = Json::parse(eval(first, false).out);
  const Json &scores = all["scores"]["data"]["out"], &before = own["scores"]["data"]["out"];
  EXPECT_EQ(Json::parse(eval(first, true).out), own) << "no such row";
  EXPECT_EQ(scores["unseen"], 2);
  EXPECT_EQ(scores["rows"], 6);
  EXPECT_NEAR(scores["accuracy"].get<double>() * 6, before["accuracy"].get<double>() * 4, 1e-12);
  EXPECT_NEAR(scores["balanced_accuracy"].get<double>() * 4, before["balanced_accuracy"].get<double>() * 3, 1e-12);
  EXPECT_EQ(scores["confusion"], before["confusion"]);
  EXPECT_TRUE(scores["log_loss"].is_null() && all["data"]["loss"].is_null());
  EXPECT_FALSE(all["data"].contains("accuracy"));
  std::uint64_t predicted = 0;
  for (const Json& one : scores["classes"]) predicted += one["predicted"].get<std::uint64_t>();
  EXPECT_EQ(predicted, 6u);
  const Outcome text = graphrun({"eval", kinds_, "--weights", weights_, "--data", other, "--count-unseen"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(has(text.out, "\n(unseen)      2\n")) << text.out;
  for (const std::string& line : lines(text.out)) EXPECT_TRUE(!line.starts_with("loss ") || line.ends_with(" -"));
}

TEST_F(Scores, StandInColumnsAndOfEvalByClassToo) {
  const Outcome outcome = graphrun({"eval", kinds_, "--weights", weights_});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"kinds on cpu", "rows ", "recall (macro)", "mcc", "test, out: by class", "dark blue",
                           "test, out: rows: actual, columns: predicted"})
    EXPECT_TRUE(has(outcome.out, part)) << part << "\n" << outcome.out;
  EXPECT_EQ(outcome.out.find("accuracy"), outcome.out.rfind("\naccuracy") + 1) << "the metric of that name stands once";
  for (const std::string& line : lines(outcome.out)) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_FALSE(has(graphrun({kinds_, "--quiet"}).out, "by class"));
}

}  // namespace
}  // namespace graphrun::testing
