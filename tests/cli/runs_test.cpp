// Stored runs: what `train --run-dir` leaves, `runs` lists and compares, and `sweep` makes of many.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fixture.h"

namespace graphrun::testing {
namespace {

namespace fs = std::filesystem;

class Runs : public Cli {
 protected:
  static Json result_in(const fs::path& folder, const std::string& run) {
    std::ifstream file(folder / run / "result.json");
    return Json::parse(file);
  }
  Json result_of(const std::string& run) { return result_in(runs_, run); }
  Outcome sweep(std::vector<std::string> words) {
    words.insert(words.begin(), {"sweep", model_, "--run-dir", runs_, "--over", "train.optimizer.sgd.lr=0.05,0.01",
                                 "--seeds", "2", "--quiet"});
    return graphrun(words);
  }
  // Settings as the legend of a plot names them, in the order of the row.
  static std::string settings_of(const Json& row) {
    std::string text;
    for (const auto& [key, value] : row.items()) {
      if (key == "metric") break;
      text += (text.empty() ? "" : " ") + key.substr(key.rfind('.') + 1) + "=" + value.get<std::string>();
    }
    return text;
  }
  const std::string runs_ = (folder_ / "runs").string();
};

TEST_F(Runs, KeepWhatATrainingWasAndReached) {
  for (const char* epochs : {"20", "5"})
    ASSERT_EQ(graphrun({model_, "--quiet", "--run-dir", runs_, "--epochs", epochs}).code, 0);
  for (const char* file : {"run.json", "model.json", "log.csv", "result.json", "weights.npz"})
    EXPECT_TRUE(fs::is_regular_file(fs::path(runs_) / "0001" / file)) << file;
  const Json again = Json::parse(graphrun({model_, "--quiet", "--json", "--epochs", "5"}).out);
  EXPECT_EQ(result_of("0002")["weights_hash"], again["weights_hash"]);
  EXPECT_EQ(result_of("0002")["settings"]["epochs"], 5);
  std::ifstream run(fs::path(runs_) / "0001" / "run.json");
  EXPECT_EQ(Json::parse(run)["command"][1], model_);

  const Outcome listed = graphrun({"runs", runs_, "--sort", "epochs"});
  ASSERT_EQ(listed.code, 0) << listed.err;
  ASSERT_EQ(lines(listed.out).size(), 3u) << listed.out;
  EXPECT_TRUE(lines(listed.out)[0].starts_with("run ")) << listed.out;
  EXPECT_TRUE(has(lines(listed.out)[0], "epochs"));
  EXPECT_TRUE(lines(listed.out)[1].starts_with("0002")) << "fewer epochs";
  const Outcome compared = graphrun({"runs", runs_ + "/0001", runs_ + "/0002"});
  EXPECT_TRUE(has(compared.out, "train.loss")) << compared.out;
  EXPECT_FALSE(has(compared.out, "optimizer")) << "which is the same";
  EXPECT_EQ(Json::parse(graphrun({"runs", runs_, "--json"}).out)[0]["settings.epochs"], 20);
  EXPECT_EQ(lines(graphrun({"runs", runs_, "--csv", "--columns", "epochs"}).out)[1], "0001,done,20");
}

TEST_F(Runs, OfSchema1HaveThePresentKeys) {
  const fs::path run = fs::path(runs_) / "0001";
  fs::create_directories(run);
  std::ofstream(run / "run.json") << R"({"command": ["graphrun"]})";
  std::ofstream(run / "result.json") << R"({"model": "m", "scores": {"test": {"out": {"matthews": 0.5}}}})";
  EXPECT_EQ(Json::parse(graphrun({"runs", runs_, "--json"}).out)[0]["scores.test.out.mcc"], 0.5);
  EXPECT_EQ(lines(graphrun({"runs", runs_, "--csv", "--columns", "scores.test.out.mcc"}).out)[1], "0001,done,0.5");
}

TEST_F(Runs, OfOtherOptimizersDifferByTheirNames) {
  for (const char* set : {"train.optimizer.sgd.lr=0.01", "train.optimizer=adam"})
    ASSERT_EQ(
        graphrun({model_, "--quiet", "--run-dir", runs_, "--seed", set[15] == '.' ? "1" : "2", "--set", set}).code, 0);
  const std::string head = lines(graphrun({"runs", runs_}).out)[0];
  EXPECT_TRUE(has(head, " optimizer ") && has(head, " seed ")) << head;
  EXPECT_FALSE(has(head, "beta1")) << head;
  const std::vector<std::string> compared = lines(graphrun({"runs", runs_ + "/0001", runs_ + "/0002"}).out);
  const auto told = [&](const std::string& key) {
    return std::count_if(compared.begin(), compared.end(),
                         [&](const auto& line) { return line.starts_with(key + " "); });
  };
  EXPECT_EQ(told("seed"), 1);
  EXPECT_EQ(told("optimizer"), 1);
  EXPECT_EQ(told("optimizer.adam.beta1"), 1);
}

// As one types it in the folder of the model.
TEST_F(Runs, HaveAFolderWhereNoneIsNamed) {
  const auto typed = [&](const std::string& words) {
    return run({"/bin/sh", "-c", "cd '" + folder_.string() + "' && exec '" GRAPHRUN_CLI "' " + words});
  };
  EXPECT_TRUE(has(typed("runs").err, "--run-dir runs"));
  const Outcome swept = typed("sweep line.json --over train.optimizer.sgd.lr=0.05,0.01 --seeds 2 --at-once 2");
  ASSERT_EQ(swept.code, 0) << swept.err;
  EXPECT_TRUE(has(swept.err, "4 runs in line-sweep, 2 at a time")) << swept.err;
  EXPECT_EQ(lines(typed("runs line-sweep").out).size(), 5u);
  ASSERT_EQ(typed("line.json --quiet --run-dir runs").code, 0);
  EXPECT_EQ(lines(typed("runs").out).size(), 2u);
}

TEST_F(Runs, ThatDidNotBeginLeaveNoFolder) {
  EXPECT_EQ(graphrun({model_, "--run-dir", runs_, "--set", "train.epoch=1"}).code, 2);
  EXPECT_TRUE(fs::is_empty(runs_));
  expect_rejected(graphrun({"runs", runs_}), {"no run is in"});
  expect_rejected(graphrun({"runs", runs_ + "x"}), {"cannot read the folder"});
  expect_rejected(graphrun({model_, "--run-dir", model_}), {"cannot make the folder"});
  expect_rejected(graphrun({model_, "--run-name", "a"}), {"goes with --run-dir"});
  expect_rejected(graphrun({model_, "--run-dir", runs_, "--run-name", "../a"}), {"not a valid name"});
}

TEST_F(Runs, OfANameAreNotWrittenOver) {
  const std::vector<std::string> words = {model_, "--quiet", "--run-dir", runs_, "--run-name", "mine"};
  ASSERT_EQ(graphrun(words).code, 0);
  const Json before = result_of("mine");
  expect_rejected(graphrun(words), {"already exists"});
  EXPECT_EQ(result_of("mine"), before);
  fs::remove(fs::path(runs_) / "mine" / "result.json");  // as a crash would leave it
  EXPECT_TRUE(has(graphrun({"runs", runs_}).out, "unfinished"));
  EXPECT_EQ(graphrun(words).code, 0);
  fs::create_directories(fs::path(runs_) / "early" / "checkpoints");  // as a crash before run.json would leave it
  std::ofstream(fs::path(runs_) / "early" / "run.json.12345.tmp") << "{";
  EXPECT_EQ(graphrun({model_, "--quiet", "--run-dir", runs_, "--run-name", "early", "--resume"}).code, 0);
  std::ofstream(fs::path(runs_) / "mine" / "result.json") << "{";
  expect_rejected(graphrun({"runs", runs_}), {"result.json:1:"});
}

TEST_F(Runs, OfASweepHaveMeanAndDeviation) {
  const Outcome swept = sweep({"--json", "--jobs", "2"});
  ASSERT_EQ(swept.code, 0) << swept.err;
  const Json table = Json::parse(swept.out);
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[1]["over"]["train.optimizer.sgd.lr"], "0.01");
  EXPECT_EQ(table[1]["runs"], 2);
  double values[2];
  for (const int seed : {1, 2}) {
    const Json alone = Json::parse(
        graphrun({model_, "--quiet", "--json", "--set", "train.optimizer.sgd.lr=0.01", "--seed", std::to_string(seed)})
            .out);
    values[seed - 1] = alone["test"]["loss"];
  }
  EXPECT_NEAR(table[1]["figures"]["test.loss"]["mean"], (values[0] + values[1]) / 2, 1e-12);
  EXPECT_NEAR(table[1]["figures"]["test.loss"]["std"], std::abs(values[0] - values[1]) / std::sqrt(2.0), 1e-9);

  const auto written = fs::last_write_time(fs::path(runs_) / "0001" / "result.json");
  EXPECT_EQ(sweep({"--json"}).out, swept.out);
  EXPECT_EQ(fs::last_write_time(fs::path(runs_) / "0001" / "result.json"), written) << "it was there already";
  fs::remove(fs::path(runs_) / "0002" / "result.json");
  EXPECT_EQ(sweep({"--json"}).out, swept.out) << "what is missing is made again";
  expect_rejected(sweep({"--epochs", "3"}), {"holds another sweep"});
  EXPECT_TRUE(has(sweep({"--sort", "-test.loss"}).out, "±"));
  expect_rejected(sweep({"--sort", "tests.loss"}), {"no run has a 'tests.loss'"});
}

// Threads of one process, processes and single trainings have the same weights and folders, and a run that fails or
// cannot be stored leaves the others unaffected.
TEST_F(Runs, OfASweepHaveTheBitsOfSingleRuns) {
  Json model = Json::parse(kLine);
  model["graph"] = {"h = dense(x, units=8, activation='tanh')", "p = dense(dropout(h, rate=0.2), units=1)",
                    "loss = mean((p - y) ^ 2)"};
  model["train"]["batch"] = 2;
  model["train"]["shuffle"] = true;
  model["data"]["validation"] = model["data"]["test"];
  model["train"]["early_stopping"] = {{"patience", 1}};
  const std::string path = file("many.json", model.dump());
  const auto swept = [&](const std::string& folder, const std::string& how, const std::string& count) {
    fs::create_directories(folder);
    std::ofstream(fs::path(folder) / "0005") << "not a folder";
    fs::create_directories(fs::path(folder) / "0002" / "result.json" / "in the way");
    std::ofstream(fs::path(folder) / "0002" / "run.json") << "{}";
    const Outcome outcome = graphrun({"sweep", path, "--run-dir", folder, how, count, "--seeds", "3", "--over",
                                      "train.optimizer.sgd.lr=0.01,1e30,0.02"});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(has(outcome.err, "0005") && has(outcome.err, "0002") && has(outcome.err, "4 of 9 runs failed"))
        << outcome.err;
    return outcome.out;
  };
  const std::string at_once = runs_ + "-threads", jobs = runs_ + "-processes";
  const std::string table = swept(at_once, "--at-once", "4");
  EXPECT_EQ(table, swept(jobs, "--jobs", "2"));
  for (const int run : {1, 3, 7, 8, 9}) {
    const std::string name = "000" + std::to_string(run), lr = run < 4 ? "0.01" : "0.02";
    const Json of_thread = result_in(at_once, name), of_process = result_in(jobs, name);
    const Json alone = Json::parse(graphrun({path, "--quiet", "--json", "--set", "train.optimizer.sgd.lr=" + lr,
                                             "--seed", std::to_string((run - 1) % 3 + 1)})
                                       .out);
    EXPECT_EQ(of_thread["weights_hash"], alone["weights_hash"]) << name;
    EXPECT_EQ(of_process["weights_hash"], alone["weights_hash"]) << name;
    for (const char* of_run : {"run.json", "model.json", "log.csv", "weights.npz"})
      EXPECT_TRUE(fs::exists(at_once + "/" + name + "/" + of_run)) << of_run;
  }
  expect_rejected(graphrun({"sweep", path, "--jobs", "2", "--at-once", "2"}), {"exclude each other"});
  expect_rejected(graphrun({"sweep", path, "--at-once", "0"}), {"--at-once"});
}

TEST_F(Runs, OfASweepHaveOneSplitWhateverTheirSeeds) {
  std::string rows = "a,b\n";
  for (int i = 0; i < 20; ++i) rows += std::to_string(i) + "," + std::to_string(i * i % 7) + "\n";
  file("rows.csv", rows);
  Json model = Json::parse(kLine);
  model["data"] = {{"source", {{"csv", "rows.csv"}, {"x", {"a"}}, {"y", {"b"}}}}, {"split", {0.5, 0, 0.5}}};
  model["train"]["optimizer"]["sgd"]["lr"] = 0;  // only split and initial values remain
  model["graph"][0]["init"] = "zeros";
  const std::string path = file("rows.json", model.dump());
  const auto deviation = [&](const std::string& name, std::vector<std::string> words) {
    words.insert(words.begin(), {"sweep", path, "--run-dir", runs_ + name, "--over", "train.epochs=1", "--quiet"});
    return graphrun(words);
  };
  const Json same = Json::parse(deviation("a", {"--seeds", "3", "--json"}).out);
  EXPECT_EQ(same[0]["split_seed"], 1);
  EXPECT_EQ(same[0]["figures"]["test.loss"]["std"], 0);
  EXPECT_TRUE(has(deviation("a", {"--seeds", "3"}).out, "Every run has the split of seed 1")) << "the report";
  const Json other = Json::parse(deviation("b", {"--over", "data.split_seed=1:3", "--seeds", "2", "--json"}).out);
  ASSERT_EQ(other.size(), 3u);
  EXPECT_NE(other[0]["figures"]["test.loss"]["mean"], other[1]["figures"]["test.loss"]["mean"]);
}

TEST_F(Runs, OfASweepTrainEvenIfTheLastSettingDoesNotFit) {
  const Outcome swept = graphrun({"sweep", model_, "--run-dir", runs_, "--over", "train.max_memory=1000000,16"});
  EXPECT_EQ(swept.code, 1);
  EXPECT_TRUE(has(swept.err, "1 of 2 runs failed")) << swept.err;
  EXPECT_EQ(result_of("0001")["steps"], 20);
}

TEST_F(Runs, OfASweepTrainEachFold) {
  std::string rows = "a,b\n";
  for (int i = 0; i < 20; ++i) rows += std::to_string(i % 10) + "," + std::to_string(i * i % 7) + "\n";
  file("rows.csv", rows);
  Json model = Json::parse(kLine);
  model["data"] = {{"source", {{"csv", "rows.csv"}, {"x", {"a"}}, {"y", {"b"}}}}, {"folds", {{"k", 4}, {"fold", 0}}}};
  model["train"]["optimizer"]["sgd"]["lr"] = 0.001;
  const std::string path = file("folds.json", model.dump());
  const Outcome swept = graphrun({"sweep", path, "--run-dir", runs_, "--folds", "--seeds", "2", "--json"});
  ASSERT_EQ(swept.code, 0) << swept.err;
  EXPECT_TRUE(has(swept.err, "run 0003, seed 1 fold 2")) << swept.err;
  EXPECT_EQ(Json::parse(swept.out)[0]["runs"], 8);
  const Json alone = Json::parse(
      graphrun({path, "--quiet", "--json", "--seed", "2", "--set", "data.split_seed=1", "--set", "data.folds.fold=3"})
          .out);
  EXPECT_EQ(result_of("0008")["weights_hash"], alone["weights_hash"]);
  expect_rejected(graphrun({"sweep", path, "--run-dir", runs_, "--folds", "--over", "data.folds.fold=0,1"}),
                  {"--folds already trains each fold"});
  expect_rejected(graphrun({"sweep", model_, "--run-dir", runs_ + "-none", "--folds"}), {"has no folds in data"});
}

// Runs with the given validation losses, as `sweep` stores them. A NaN is a failed run.
class ComparedRuns : public Runs {
 protected:
  void store(int units, const std::vector<double>& losses, int folds = 0) const {
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const fs::path run = fs::path(runs_) / (std::to_string(units) + "-" + std::to_string(i));
      fs::create_directories(run);
      std::ofstream(run / "run.json") << R"({"command": ["graphrun"]})";
      Json model = {{"graph", {{{"name", "h"}, {"units", units}}}}};
      if (folds > 0) model["data"]["folds"] = {{"k", folds}, {"fold", i}};
      std::ofstream(run / "model.json") << model;
      Json result = {{"model", "m"}, {"settings", {{"seed", folds > 0 ? 1 : i}}}};
      if (std::isnan(losses[i]))
        result["failed"] = "the loss is nan";
      else
        result["validation"] = {{"loss", losses[i]}, {"r2", 1 - losses[i]}, {"gain", -losses[i]}};
      std::ofstream(run / "result.json") << result;
    }
  }
  Json compared(std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {"runs", runs_, "--compare", "--json"});
    const Outcome outcome = graphrun(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? Json::parse(outcome.out) : Json();
  }
};

TEST_F(ComparedRuns, HaveIntervalsOfPairedDifferences) {
  store(4, {1.0, 2.0, 3.0});
  store(8, {1.5, 2.7, 3.6});   // differences 0.5, 0.7, 0.6
  store(16, {0.9, 2.4, 3.0});  // differences -0.1, 0.4, 0
  const Json rows = compared();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["graph.h.units"], "4");
  EXPECT_EQ(rows[0]["verdict"], "best");
  EXPECT_TRUE(rows[0]["difference"].is_null());
  EXPECT_DOUBLE_EQ(rows[0]["mean"], 2);
  EXPECT_DOUBLE_EQ(rows[0]["std"], 1);
  EXPECT_EQ(rows[1]["verdict"], "not distinguishable");
  EXPECT_EQ(rows[2]["verdict"], "worse");
  EXPECT_NEAR(rows[2]["difference"], 0.6, 1e-12);
  const double half = 4.302652729911275 * 0.1 / std::sqrt(3.0);  // 97.5 % quantile for 2 degrees of freedom
  EXPECT_NEAR(rows[2]["low"], 0.6 - half, 1e-9);
  EXPECT_NEAR(rows[2]["high"], 0.6 + half, 1e-9);
  EXPECT_EQ(rows[2]["pairs"], 3);

  const std::vector<std::string> csv = lines(graphrun({"runs", runs_, "--compare", "--csv"}).out);
  ASSERT_EQ(csv.size(), 4u);
  EXPECT_EQ(csv[0], "graph.h.units,metric,runs,incomplete,mean,std,difference,low,high,pairs,verdict");
  std::string last = "8,validation.loss";
  for (const char* key : {"runs", "incomplete", "mean", "std", "difference", "low", "high", "pairs"})
    last += "," + rows[2][key].dump();
  EXPECT_EQ(csv[3], last + ",worse");
  const std::string text = graphrun({"runs", runs_, "--compare"}).out;
  EXPECT_TRUE(has(text, "[0.352, 0.848]")) << text;
  EXPECT_TRUE(has(text, "by equal seed, with 95 % confidence intervals")) << text;
}

TEST_F(ComparedRuns, UseStudentsQuantiles) {
  const std::pair<std::size_t, double> known[] = {
      {2, 12.706204736174694}, {5, 2.7764451051977934}, {30, 2.045229642132703}, {101, 1.9839715185235518}};
  for (const auto& [n, quantile] : known) {
    fs::remove_all(runs_);
    store(4, std::vector<double>(n, 0.0));
    std::vector<double> others(n, 1.0);
    others[0] = 2;
    store(8, others);
    const double mean = 1 + 1 / static_cast<double>(n);  // the standard deviation is sqrt(1/n)
    EXPECT_NEAR(compared()[1]["high"], mean + quantile / static_cast<double>(n), 1e-9) << n;
  }
}

TEST_F(ComparedRuns, OfFoldsAllowForTheirOverlap) {
  store(4, {1.0, 2.0, 3.0}, 3);
  store(8, {1.5, 2.7, 3.6}, 3);
  const Json rows = compared();
  EXPECT_NEAR(rows[1]["high"], 0.6 + 4.302652729911275 * 0.1 * std::sqrt(1 / 3.0 + 1 / 2.0), 1e-9);
  EXPECT_TRUE(has(graphrun({"runs", runs_, "--compare"}).out, "by equal seed and fold"));
}

TEST_F(ComparedRuns, ThatFailedDoNotMakeASettingTheBest) {
  store(4, {1.0, 2.0, 3.0});
  store(8, {0.5, NAN, 0.6});
  store(16, {NAN, NAN, NAN});
  const Json rows = compared();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["graph.h.units"], "8") << "it has the best mean";
  EXPECT_EQ(rows[0]["incomplete"], 1);
  EXPECT_EQ(rows[0]["pairs"], 2);
  EXPECT_EQ(rows[1]["verdict"], "best");
  EXPECT_EQ(rows[2]["runs"], 0);
  EXPECT_TRUE(rows[2]["mean"].is_null());
  EXPECT_EQ(rows[2]["verdict"], "-");
}

TEST_F(ComparedRuns, AreComparedByAMetricInItsDirection) {
  store(4, {1.0, 2.0});
  store(8, {0.5, 1.4});
  EXPECT_EQ(compared({"--sort", "r2"})[0]["graph.h.units"], "8") << "more is better";
  EXPECT_TRUE(has(graphrun({"runs", runs_, "--compare", "--sort", "r2"}).out, "validation.r2"));
  EXPECT_EQ(compared({"--sort", "-validation.loss"})[0]["graph.h.units"], "8") << "less is better in any order";
  EXPECT_EQ(compared({"--sort", "validation.gain"})[0]["graph.h.units"], "4");
  EXPECT_EQ(compared({"--sort", "-validation.gain"})[0]["graph.h.units"], "8") << "the sign says that more is better";
  expect_rejected(graphrun({"runs", runs_, "--compare", "--sort", "units"}),
                  {"no completed run has the metric 'graph.h.units'"});
  expect_rejected(graphrun({"runs", runs_, "--compare", "--sort", "validation.los"}), {"did you mean"});
  expect_rejected(graphrun({"runs", runs_, "--compare", "--columns", "r2"}), {"not with --compare"});
  fs::remove_all(runs_);
  store(4, {1.0});
  store(8, {2.0});
  const Json rows = compared();
  EXPECT_EQ(rows[1]["difference"], 1);
  EXPECT_TRUE(rows[1]["low"].is_null());
  EXPECT_TRUE(has(graphrun({"runs", runs_, "--compare"}).out, "at least two seeds"));
  fs::remove_all(runs_);
  store(4, {0.1, 0.1, 0.1});
  store(8, {0.2, 0.3, 0.4});
  const std::string text = graphrun({"runs", runs_, "--compare"}).out;
  EXPECT_TRUE(has(text, "0.1 ± 0") && !has(text, "e-17")) << text;
  fs::remove_all(runs_);
  store(4, {NAN});
  expect_rejected(graphrun({"runs", runs_, "--compare"}), {"no completed run has the metric 'validation.loss'"});
}

TEST_F(Runs, OfASweepAreComparedAtItsEnd) {
  const Outcome swept = sweep({"--columns", "test.loss,train.loss"});
  ASSERT_EQ(swept.code, 0) << swept.err;
  EXPECT_LT(lines(swept.out)[0].find("test.loss"), lines(swept.out)[0].find("train.loss"));
  EXPECT_FALSE(has(lines(swept.out)[0], "rmse"));
  const std::string compared = graphrun({"runs", runs_, "--compare"}).out;
  EXPECT_TRUE(swept.out.ends_with("\n" + compared)) << swept.out << compared;
  const Json rows = Json::parse(graphrun({"runs", runs_, "--compare", "--json"}).out);
  EXPECT_EQ(rows[0]["metric"], "test.loss") << "there is no validation split";
  expect_rejected(sweep({"--columns", "test.los"}), {"no run has a 'test.los'", "test.loss"});
}

TEST_F(Runs, AreNamedByWhatDiffersInAPlot) {
  for (const char* lr : {"0.05", "0.01"})
    for (const char* seed : {"1", "2"})
      ASSERT_EQ(graphrun({model_, "--quiet", "--run-dir", runs_, "--seed", seed, "--set",
                          std::string("train.optimizer.sgd.lr=") + lr})
                    .code,
                0);
  const auto legend = [&](std::vector<std::string> names) {
    std::vector<std::string> words = {"plot", "--columns=loss"};
    for (const std::string& name : names) words.push_back(runs_ + "/" + name);
    return lines(graphrun(words).out).back();  // without UTF-8 with the marks of the curves
  };
  const auto expect_legend = [&](std::vector<std::string> names, const std::string& first, const std::string& second) {
    const std::string text = legend(std::move(names));
    EXPECT_TRUE(has(text, first + "   ") && text.ends_with(second)) << text;
  };
  expect_legend({"0001", "0003"}, "a lr=0.05", "b lr=0.01");
  expect_legend({"0002", "0003"}, "a lr=0.05 seed=2", "b lr=0.01 seed=1");
  fs::remove(fs::path(runs_) / "0003" / "result.json");
  EXPECT_TRUE(has(legend({"0001", "0003"}), "0003/log.csv")) << "its settings are not known yet";
}

TEST_F(Runs, OfASweepArePictured) {
  const auto drawn = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"plot", runs_});
    const Outcome outcome = graphrun(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  ASSERT_EQ(graphrun({"sweep", model_, "--run-dir", runs_, "--over", "train.optimizer.sgd.lr=0.05,0.01", "--over",
                      "train.epochs=5:20:2x", "--over", "train.batch=2,4", "--seeds", "2", "--quiet"})
                .code,
            0);
  const Json rows = Json::parse(graphrun({"runs", runs_, "--compare", "--json"}).out);
  double sum = 0;
  for (const Json& row : rows)
    if (row["settings.optimizer.sgd.lr"] == "0.01" && row["settings.epochs"] == "20") sum += double(row["mean"]);
  char mean[32];
  std::snprintf(mean, sizeof mean, "%.3g", sum / 2);
  const std::vector<std::string> map = lines(drawn({"--what", "heatmap", "--columns", "epochs,lr"}));
  ASSERT_EQ(map.size(), 6u);
  EXPECT_EQ(map[0], "test.loss, mean over seeds and other settings");
  EXPECT_TRUE(has(map[2], "5") && has(map[2], "10") && map[2].ends_with("20")) << "numbers in order: " << map[2];
  EXPECT_TRUE(map[3].starts_with("0.01") && map[3].ends_with(mean)) << map[3] << " for " << mean;

  const std::string parallel = drawn({});
  EXPECT_TRUE(has(parallel, "test.loss, mean over seeds, best 8 of 12 settings")) << parallel;
  EXPECT_TRUE(has(parallel, "\nepochs: 5 to 20 (top)\n")) << parallel;
  EXPECT_TRUE(has(parallel, "a " + settings_of(rows[0]))) << parallel;
  const std::string curves = drawn({"--what", "curves", "--columns", "loss", "--log-scale", "y", "--title", "Mine"});
  EXPECT_TRUE(has(curves, "Mine") && has(curves, settings_of(rows[0]))) << curves;
  for (const char* what : {"heatmap", "parallel", "curves"}) {
    for (const char* suffix : {".svg", ".png", ".txt"}) {
      const std::string name = (folder_ / what).string() + suffix;
      EXPECT_EQ(drawn({"--what", what, "-o", name}), "");
      EXPECT_GT(fs::file_size(name), 80u) << name;
    }
  }
  expect_rejected(graphrun({"plot", runs_, "--what", "surface"}), {"heatmap, parallel and curves"});
  expect_rejected(graphrun({"plot", runs_, "--what", "heatmap", "--columns", "lr"}), {"needs two settings", "epochs"});
  expect_rejected(graphrun({"plot", runs_, "--columns", "lr,setings.epochs"}), {"did you mean 'settings.epochs'"});
  expect_rejected(graphrun({"plot", runs_, "--what", "curves", "--columns", "los"}), {"loss"});
  expect_rejected(graphrun({"plot", folder_.string()}), {"is a folder, and not that of a run"});

  ASSERT_EQ(graphrun({"report", runs_}).code, 0);
  std::ifstream stream(fs::path(runs_) / "report.html");
  const std::string page{std::istreambuf_iterator<char>(stream), {}};
  for (const char* part : {"<h1>runs</h1>", "not distinguishable</td>", "by equal seed, with 95 %", "<h2>Figures</h2>",
                           "</figcaption>\n<div class=\"wide\"><table>",  // the table scrolls without its caption
                           ">verdict</th><th scope=\"col\">runs</th>",
                           "alt=\"test.loss, mean over seeds and other settings\"", "alt=\"loss, mean over seeds"})
    EXPECT_TRUE(has(page, part)) << part;
}

TEST_F(Runs, ThatDivergeAreListedAsFailed) {
  const Outcome failed = graphrun({model_, "--quiet", "--run-dir", runs_, "--set", "train.optimizer.sgd.lr=100"});
  EXPECT_EQ(failed.code, 1) << failed.err;
  ASSERT_EQ(graphrun({model_, "--quiet", "--run-dir", runs_}).code, 0);
  const Json listed = Json::parse(graphrun({"runs", runs_, "--json"}).out);
  EXPECT_EQ(listed[0]["state"], "failed");
  EXPECT_EQ(listed[0]["settings.optimizer.sgd.lr"], 100);
  EXPECT_GT(listed[0]["steps"], 0);
  EXPECT_LT(listed[0]["steps"], 20);
  const std::vector<std::string> table = lines(graphrun({"runs", runs_}).out);
  EXPECT_TRUE(has(table[0], "optimizer.sgd.lr") && has(table[0], "steps") && has(table[1], "failed")) << table[1];
}

TEST_F(Runs, ArePicturedWithTheirData) {
  fs::create_directories(folder_ / "elsewhere");
  file("elsewhere/rows.csv", "a,b\n1,3\n2,5\n3,7\n4,8\n");
  Json model = Json::parse(kLine);
  model["data"] = {{"train", {{"csv", "rows.csv"}, {"x", {"a"}}, {"y", {"b"}}}}};
  const std::string path = file("elsewhere/rows.json", model.dump());
  ASSERT_EQ(graphrun({path, "--quiet", "--run-dir", runs_}).code, 0);
  const Outcome drawn = graphrun({"plot", runs_ + "/0001", "--what", "residuals"});
  EXPECT_EQ(drawn.code, 0) << drawn.err;
}

class InterruptedSweep : public Runs, public ::testing::WithParamInterface<const char*> {};

TEST_P(InterruptedSweep, IsGoneOnWith) {
  const std::vector<std::string> words = {"sweep",    model_, "--run-dir", runs_,    "--over", "train.epochs=1:24",
                                          GetParam(), "2",    "--csv",     "--quiet"};
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::vector<std::string> command = words;
    command.insert(command.begin(), GRAPHRUN_CLI);
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (std::freopen("/dev/null", "w", stdout) != nullptr) ::execv(GRAPHRUN_CLI, arguments.data());
    ::_exit(127);
  }
  for (int i = 0; i < 5000 && !fs::exists(fs::path(runs_) / "0002" / "result.json"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::kill(child, SIGTERM);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));  // 130, or 0 where it was done by then
  const Outcome resumed = graphrun(words);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  fs::remove_all(runs_);
  EXPECT_EQ(graphrun(words).out, resumed.out);
  EXPECT_EQ(lines(resumed.out).size(), 25u);
}

// A run that the sweep reports is complete, whenever the sweep is killed.
TEST_F(Runs, OfAKilledSweepAreCompleteOnceReported) {
  const auto words = [&](const std::string& folder) {
    return std::vector<std::string>{"sweep", model_, "--run-dir", folder, "--seeds", "60", "--at-once", "2", "--csv"};
  };
  std::size_t reported = 0;
  for (const std::size_t wanted : {2u, 9u, 25u}) {
    const Outcome killed = graphrun(words(runs_), {.on_stderr = [&](pid_t process, std::string_view err) {
                                      if (lines(std::string(err)).size() >= wanted) ::kill(process, SIGKILL);
                                    }});
    for (const std::string& line : lines(killed.err)) {
      const std::size_t at = line.find(": run ");
      if (at == line.npos) continue;
      ++reported;
      const std::string name = line.substr(at + 6, 4);
      std::ifstream log(fs::path(runs_) / name / "log.csv");
      const std::string text{std::istreambuf_iterator<char>(log), {}};
      EXPECT_TRUE(has(text, result_of(name)["weights_hash"].get<std::string>())) << line;
      for (const char* file : {"run.json", "model.json", "weights.npz"})
        EXPECT_GT(fs::file_size(fs::path(runs_) / name / file), 0u) << line;
    }
  }
  EXPECT_GT(reported, 9u);
  EXPECT_EQ(graphrun(words(runs_)).out, graphrun(words(runs_ + "-whole")).out);
}

// Nine settings train for a third of the epochs, and the best three of them for all.
TEST_F(Runs, OfASweepAreHalved) {
  Json model = Json::parse(kLine);
  model["data"]["validation"] = model["data"]["test"];
  model["train"]["epochs"] = 27;
  const std::string path = file("halved.json", model.dump());
  const std::vector<std::string> words = {
      "sweep",     path,
      "--run-dir", runs_,
      "--seeds",   "2",
      "--halving", "--json",
      "--over",    "train.optimizer.sgd.lr=1e30,0.001,0.002,0.003,0.05,0.004,0.01,0.02,0.0005"};
  const auto rates = [](const Json& table, std::size_t count) {
    std::set<std::string> all;
    for (std::size_t i = 0; i < count; ++i) all.insert(table[i]["over"]["train.optimizer.sgd.lr"]);
    return all;
  };
  const Outcome swept = graphrun(words);
  EXPECT_EQ(swept.code, 1) << "of the rate 1e30";
  EXPECT_TRUE(has(swept.err, "rung 1 of 2: 9 settings, 9 epochs") && has(swept.err, "2 of 18 runs failed"))
      << swept.err;
  const Json table = Json::parse(swept.out);
  ASSERT_EQ(table.size(), 9u);
  EXPECT_EQ(rates(table, 3), (std::set<std::string>{"0.05", "0.02", "0.01"}));
  for (std::size_t i = 0; i < 9; ++i) {
    const bool failed = table[i]["over"]["train.optimizer.sgd.lr"] == "1e30";
    EXPECT_EQ(table[i]["rung"], i < 3 ? 2 : 1);
    EXPECT_EQ(table[i]["runs"], failed ? 0 : 2);
    EXPECT_EQ(failed || table[i]["steps"] == 2 * (i < 3 ? 27 : 9), true) << i;
  }
  for (const int seed : {1, 2}) {
    const Json alone = Json::parse(
        graphrun({path, "--quiet", "--json", "--set", "train.optimizer.sgd.lr=0.05", "--seed", std::to_string(seed)})
            .out);
    const Json halved = result_of(seed == 1 ? "0009" : "0010");
    EXPECT_EQ(halved["weights_hash"], alone["weights_hash"]);
    EXPECT_EQ(halved["validation"], alone["validation"]);
    EXPECT_EQ(halved["steps"], 27);
  }
  fs::remove(fs::path(runs_) / "0009" / "result.json");  // as if killed in the last rung
  EXPECT_EQ(graphrun(words).out, swept.out);
  std::size_t reported = 0;  // killed at any time, the same command gives the same table
  for (const std::size_t wanted : {3u, 9u, 14u, 21u, 24u}) {
    std::vector<std::string> again = words;
    again[3] = runs_ + "-killed";
    const Outcome killed = graphrun(again, {.on_stderr = [&](pid_t process, std::string_view err) {
                                      if (lines(std::string(err)).size() >= wanted) ::kill(process, SIGKILL);
                                    }});
    reported += lines(killed.err).size();
  }
  EXPECT_GT(reported, 9u);
  std::vector<std::string> whole = words;
  whole[3] = runs_ + "-killed";
  EXPECT_EQ(graphrun(whole).out, swept.out);
  EXPECT_TRUE(has(graphrun({"runs", runs_, "--compare"}).out, "best"));
  std::vector<std::string> as_text = words;
  as_text[7] = "--quiet";
  EXPECT_TRUE(has(lines(graphrun(as_text).out)[0], "rung  steps  runs")) << graphrun(as_text).out;
  const auto rejected = [&](std::vector<std::string> more, const std::string& reason) {
    more.insert(more.begin(), {"sweep", path, "--run-dir", runs_ + "-none", "--halving"});
    expect_rejected(graphrun(more), {reason});
  };
  rejected({}, "at least two settings");
  rejected({"--over", "train.epochs=1,2"}, "equal epochs");
  rejected({"--over", "train.optimizer.sgd.lr=1,2", "--jobs", "2"}, "exclude each other");
  expect_rejected(graphrun({"sweep", path, "--halving=1"}), {"--halving must be"});
}

// Networks of an ensemble have the weights of single runs; predictions are the mean of theirs, bit for bit.
TEST_F(Runs, OfAnEnsemblePredictTheMean) {
  const std::string nets = runs_ + "-ensemble", rows = file("rows.csv", "x0\n1.5\n-2\n0.3\n");
  file("line.csv", "x0,y0\n0,1\n1,3.5\n2,5\n3,7\n4,8\n5,12\n");
  Json model = Json::parse(kLine);
  model["data"] = {{"source", {{"csv", "line.csv"}, {"x", {"x0"}}, {"y", {"y0"}}}},
                   {"split", {0.5, 0, 0.5}},
                   {"transform", {{"x", {"standardize"}}, {"y", {"standardize"}}}}};
  const std::string path = file("ensemble.json", model.dump());
  const std::vector<std::string> train = {"train", path, "--ensemble", "8", "-o", nets};
  const Outcome trained = graphrun(train);
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(has(trained.out, "±") && has(trained.err, "8 of 8: run ")) << trained.err;
  const Json alone = Json::parse(
      graphrun({path, "--quiet", "--json", "--seed", "3", "--set", "data.split_seed=1", "--hash-weights"}).out);
  EXPECT_EQ(result_in(nets, "0003")["weights_hash"], alone["weights_hash"]);

  const auto predict = [&](const std::vector<std::string>& weights, const std::string& flag) {
    std::vector<std::string> words = {"predict", path, rows, flag, "--weights"};
    words.insert(words.end(), weights.begin(), weights.end());
    return graphrun(words);
  };
  std::vector<std::string> files;
  std::vector<std::vector<double>> of_rows(3);
  for (int i = 1; i <= 8; ++i) {
    files.push_back(nets + "/000" + std::to_string(i) + ".npz");
    const Json single = Json::parse(predict({files.back()}, "--json").out);
    for (std::size_t row = 0; row < 3; ++row) of_rows[row].push_back(single["predictions"][row][0].get<float>());
  }
  const Json mean = Json::parse(predict(files, "--json").out);
  EXPECT_EQ(mean["columns"], (Json{"p", "p.std"}));
  for (std::size_t row = 0; row < 3; ++row) {
    double sum = 0, squares = 0;
    for (const double value : of_rows[row]) sum += value;
    for (const double value : of_rows[row]) squares += (value - sum / 8) * (value - sum / 8);
    EXPECT_EQ(mean["predictions"][row][0].get<float>(), static_cast<float>(sum / 8));
    EXPECT_EQ(mean["predictions"][row][1].get<float>(), static_cast<float>(std::sqrt(squares / 7)));
  }
  EXPECT_TRUE(predict(files, "-q").out.starts_with("p,p.std\n"));
  for (const std::string& line : lines(predict(files, "-q").out))
    EXPECT_LE(line.size(), 26u) << "digits of f32: " << line;
  EXPECT_EQ(graphrun({"predict", path, "--weights", files[0], files[1], rows}).out,
            predict({files[0], files[1]}, "-q").out);

  fs::remove(fs::path(nets) / "0005" / "result.json");
  EXPECT_TRUE(has(graphrun(train).err, "7 of 8 runs were there already"));
  EXPECT_TRUE(fs::exists(files[4]));
  expect_rejected(graphrun({"train", path, "--ensemble", "9", "-o", nets}), {"holds another sweep"});
  expect_rejected(graphrun({"train", path, "--ensemble", "2"}), {"-o FOLDER"});
  expect_rejected(graphrun({"train", path, "--ensemble", "1", "-o", nets}), {"from 2 to 1000"});
  expect_rejected(graphrun({"train", path, "-o", nets}), {"goes with --ensemble"});
  for (const char* flag : {"--save-weights=w.npz", "--run-dir=r", "--log=l.csv", "--resume=c"})
    expect_rejected(graphrun({"train", path, "--ensemble", "2", "-o", nets, flag}), {"does not go with --ensemble"});
}

// Here the mean logit is positive, but the mean probability is below 1/2.
TEST_F(Runs, OfAnEnsembleVoteByTheirMeanProbability) {
  Json model = Json::parse(kLine);
  model["graph"] = {
      Json::parse(R"({"name": "z", "op": "dense", "inputs": ["x"], "units": 1, "bias": false, "init": "zeros"})"),
      "loss = mean(sigmoid_cross_entropy(z, y))"};
  model["outputs"] = {{"z", "y"}};
  model["train"] = {{"minimize", "loss"}, {"epochs", 1}, {"optimizer", {{"sgd", {{"lr", 8}}}}}};
  model["data"] = {{"train", {{"inline", {{"x", {{1}}}, {"y", {{1}}}}}}}};
  const std::string yes = file("yes.json", model.dump());  // ends with the weight 4
  model["data"]["train"]["inline"]["y"] = {{0}};
  model["train"]["optimizer"]["sgd"]["lr"] = 3;
  const std::string no = file("no.json", model.dump());  // ends with -1.5
  const std::string a = (folder_ / "a.npz").string(), b = (folder_ / "b.npz").string(), rows = file("r.csv", "x\n1\n");
  ASSERT_EQ(graphrun({yes, "-q", "--save-weights", a}).code, 0);
  ASSERT_EQ(graphrun({no, "-q", "--save-weights", b}).code, 0);
  const std::vector<std::string> words = {"predict", yes, rows, "--labels", "--weights", a, b, b};
  const std::vector<std::string> logits = lines(graphrun(words).out);
  ASSERT_EQ(logits.size(), 2u) << graphrun(words).err;
  EXPECT_EQ(logits[0], "y,z,z.std");
  EXPECT_TRUE(logits[1].starts_with("0,0.3333333")) << logits[1];
  std::vector<std::string> probabilities = words;
  probabilities.push_back("--probabilities");
  EXPECT_TRUE(lines(graphrun(probabilities).out).at(1).starts_with("0,0.448"));
}

// A run whose log or weights cannot be written is not done, so the same command trains it again.
TEST_F(Runs, WithoutTheirLogOrWeightsAreNotDone) {
  for (const std::string how : {"--at-once", "--jobs"}) {
    for (const std::string name : {"log.csv", "weights.npz"}) {
      const fs::path folder = runs_ + how + name, run = folder / "0001";
      fs::create_directories(run);
      std::ofstream(run / "run.json") << "{}";
      fs::create_symlink("/dev/full", run / name);
      const auto swept = [&] {
        return graphrun({"sweep", model_, "--run-dir", folder, "--seeds", "2", how, "2"},
                        {.environment = {"TMPDIR=" + folder_.string()}});  // gets the rescued weights
      };
      const Outcome full = swept();
      EXPECT_EQ(full.code, 1) << full.err;
      EXPECT_TRUE(has(full.err, "1 of 2 runs failed") && has(full.err, name)) << full.err;
      EXPECT_FALSE(fs::exists(run / "result.json")) << name;
      EXPECT_TRUE(fs::exists(folder / "0002" / "result.json"));
      fs::remove(run / name);
      const Outcome again = swept();
      EXPECT_EQ(again.code, 0) << again.err;
      EXPECT_TRUE(has(again.err, "1 of 2 runs were there already")) << again.err;
      EXPECT_TRUE(fs::is_regular_file(run / name) && fs::exists(run / "result.json")) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(InThreadsAndProcesses, InterruptedSweep, ::testing::Values("--at-once", "--jobs"));

TEST_F(Runs, OfASweepGoOverArgumentsOfFormulasAndOverNull) {
  Json model = Json::parse(kLine);
  model["graph"] = {"p = dense(x, units=1, bias=true)", "loss = mean((p - y) ^ 2)"};
  const Outcome swept = graphrun({"sweep", file("formula.json", model.dump()), "--run-dir", runs_, "--quiet", "--json",
                                  "--over", "graph.p.bias=true,false", "--over", "train.metrics=null,[\"mae\"]"});
  ASSERT_EQ(swept.code, 0) << swept.err;
  const Json table = Json::parse(swept.out);
  ASSERT_EQ(table.size(), 4u);
  std::set<double> losses;
  for (const Json& row : table) losses.insert(row["figures"]["test.loss"]["mean"].get<double>());
  EXPECT_EQ(losses.size(), 2u) << "with and without bias: " << swept.out;
}

TEST_F(Runs, OfASweepOfOneSayThatItIsOne) {
  EXPECT_TRUE(
      has(graphrun({"sweep", model_, "--run-dir", runs_}).err, "the sweep is a single run; --over PATH=VALUES"));
}

TEST_F(Runs, OfASweepThatCannotBeAreRejectedBeforeAny) {
  for (const auto& [over, says] :
       std::vector<std::pair<std::string, std::string>>{{"train.epochs", "is not PATH=VALUES"},
                                                        {"train.epochs=", "is not PATH=VALUES"},
                                                        {"train.epochs=4:64:1x", "never reaches"},
                                                        {"train.epochs=4:64:-2", "never reaches"},
                                                        {"train.epochs=1,1", "twice"},
                                                        {"train.epochs=1,,2", "empty value"},
                                                        {"train.seed=1,2", "--seeds"},
                                                        {"train.epoch=1,2", "epoch"},
                                                        {"train.epochs=1:99999999", "more than"},
                                                        {"train.epochs=0:1:0x", "never reaches"},
                                                        {"train.optimizer.sgd.lr=0.1..0.3", "FIRST:LAST:+STEP"},
                                                        {"train.batch=-1,2", "--over train.batch=-1"}}) {
    const Outcome rejected = graphrun({"sweep", model_, "--run-dir", runs_, "--over", over});
    EXPECT_EQ(rejected.code, 2) << over;
    EXPECT_TRUE(has(rejected.err, says)) << over << "\n" << rejected.err;
    EXPECT_FALSE(fs::exists(fs::path(runs_) / "0001")) << over;
  }
  // A loss that is not finite is not a command-line error: the sweep reports it and trains the other runs.
  const Outcome failed = graphrun({"sweep", model_, "--run-dir", runs_, "--over", "train.optimizer.sgd.lr=0.01,1e30"});
  EXPECT_EQ(failed.code, 1);
  EXPECT_TRUE(has(failed.err, "1 of 2 runs failed")) << failed.err;
  EXPECT_TRUE(has(failed.out, "1 (step ")) << failed.out;
}

}  // namespace
}  // namespace graphrun::testing
