// replay: repeats a stored run and compares the outputs; and results of training runs that end early.
#include <gtest/gtest.h>

#include <fstream>

#include "fixture.h"
#include "support/variable.h"

namespace graphrun::testing {
namespace {

namespace fs = std::filesystem;

class Replay : public Cli {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  Outcome replay(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"replay", path("runs/0001"), "-q"});
    return graphrun(more);
  }
  // The stored run, changed: everywhere in the file.
  void change(const std::string& name, const std::string& from, const std::string& to) const {
    std::ifstream in(path("runs/0001/" + name), std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    ASSERT_TRUE(has(text, from)) << text;
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    file("runs/0001/" + name, text);
  }
  std::string last_hash() const {
    std::ifstream in(path("runs/0001/log.csv"));
    std::string line, last;
    while (std::getline(in, line)) last = line;
    return last.substr(last.rfind(',') + 1);
  }
};

TEST_F(Replay, TheSame) {
  ASSERT_EQ(
      graphrun({model_, "-q", "--run-dir", path("runs"), "--set", "train.optimizer.sgd.lr=0.01", "--epochs=7"}).code,
      0);
  const Outcome outcome = replay();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "the same after 7 reports and at the end, weights " + last_hash())) << outcome.out;
  const Json json = Json::parse(replay({"--json"}).out);
  EXPECT_EQ(keys(json), (std::vector<std::string>{"run", "reports", "same", "difference", "weights_hash"}));
  EXPECT_EQ(json["reports"], 7);
  EXPECT_TRUE(json["difference"].is_null());
}

TEST_F(Replay, ADifferenceIsNamed) {
  ASSERT_EQ(graphrun({model_, "-q", "--run-dir", path("runs")}).code, 0);
  change("log.csv", last_hash(), "0123456789abcdef");
  const Outcome outcome = replay();
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(has(outcome.err, "part after step 20 (epoch 20): weights_hash was 0123456789abcdef, now")) << outcome.err;
  // Another seed is another training from its first report on.
  change("model.json", "\"seed\": 1", "\"seed\": 2");
  const Outcome other = replay({"--json"});
  EXPECT_EQ(other.code, 3);
  EXPECT_EQ(Json::parse(other.out)["difference"]["step"], 1);
}

TEST_F(Replay, ARunThatWasCutShort) {
  ASSERT_EQ(graphrun({model_, "-q", "--run-dir", path("runs")}).code, 0);
  fs::remove(path("runs/0001/result.json"));
  std::ifstream in(path("runs/0001/log.csv"));
  std::string text, line;
  for (int i = 0; i < 6 && std::getline(in, line); ++i) text += line + "\n";
  file("runs/0001/log.csv", text + "6,6,0.0");  // and a piece of a line
  const Outcome outcome = replay();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "the same after 5 reports, weights")) << outcome.out;
}

TEST_F(Replay, WhatIsNoRun) {
  expect_rejected(replay(), {"not the folder of a run"});
  ASSERT_EQ(graphrun({model_, "-q", "--run-dir", path("runs")}).code, 0);
  fs::remove(path("runs/0001/result.json"));
  fs::remove(path("runs/0001/log.csv"));
  expect_rejected(replay(), {"has left nothing to compare with"});
}

// Weights, data and flags are looked for from where the command was given.
TEST_F(Replay, FromAnotherFolder) {
  fs::create_directory(path("work"));
  Json model = Json::parse(kLine);
  model["data"] = Json::parse(R"({"train": {"csv": "data.csv", "x": ["x"], "y": ["y"]}})");
  file("work/model.json", model.dump());
  file("work/data.csv", "x,y\n0,1\n1,3\n2,5\n3,7\n");
  const std::string go = "cd " + path("work") + " && exec " GRAPHRUN_CLI " ";
  ASSERT_EQ(run({"/bin/sh", "-c", go + "model.json -q --save-weights w.npz"}).code, 0);
  ASSERT_EQ(run({"/bin/sh", "-c", go + "train --weights w.npz model.json -q --executor=ref --run-dir ../runs"}).code,
            0);
  const Outcome outcome = replay();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

// Whatever the environment says of data.
TEST_F(Replay, AndReportsFindTheDataThatTheRunFound) {
  file("models/points.csv", "a,b\n0,1\n1,3\n2,5\n3,7\n");
  Json model = Json::parse(kLine);
  model["data"] = Json::parse(R"({"train": {"csv": "points.csv", "x": "a", "y": "b"}})");
  const std::string path = file("models/table.json", model.dump());
  const std::string run = (folder_ / "runs" / "one").string();
  ASSERT_EQ(graphrun({path, "--quiet", "--run-dir", (folder_ / "runs").string(), "--run-name", "one"}).code, 0);
  const test::Variable data("GRAPHRUN_DATA", folder_.string());
  const Outcome replayed = graphrun({"replay", run, "--quiet"});
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  const Outcome report = graphrun({"report", run});
  EXPECT_EQ(report.code, 0) << report.err;
}

TEST_F(Replay, OfATrainingThatStoppedEarly) {
  Json model = Json::parse(kLine);
  model["data"]["validation"] = Json::parse(R"({"inline": {"x": [[0], [1]], "y": [[3], [0]]}})");
  model["train"]["epochs"] = 1000;
  model["train"]["early_stopping"] = Json::parse(R"({"patience": 3, "monitor": "rmse"})");
  model["train"]["lr_plateau"] = Json::parse(R"({"patience": 2, "factor": 0.5})");
  file("line.json", model.dump());
  const Outcome outcome = graphrun({model_, "-q", "--json", "--assert-no-alloc", "--run-dir", path("runs")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out), stopping = result["early_stopping"];
  EXPECT_EQ(keys(stopping), (std::vector<std::string>{"stopped", "monitor", "best", "restored"}));
  EXPECT_TRUE(stopping["stopped"]);
  EXPECT_TRUE(stopping["restored"]);
  EXPECT_FALSE(result["interrupted"]);
  EXPECT_EQ(stopping["best"]["value"], result["validation"]["rmse"]);
  EXPECT_EQ(stopping["best"]["epoch"].get<int>() + 3, result["epochs"].get<int>());
  EXPECT_EQ(result["lr_factor"], 0.5);
  EXPECT_EQ(replay().code, 0);
  const Outcome text = graphrun({model_, "-q"});
  EXPECT_TRUE(has(text.out, "(stopped early)")) << text.out;
  EXPECT_TRUE(has(text.out, "weights restored")) << text.out;
}

// Weights on the disk are finite, and the message says which op began it.
TEST_F(Replay, WeightsOfATrainingThatDiverges) {
  Json model = Json::parse(kLine);
  model["train"]["optimizer"]["sgd"]["lr"] = 1000;
  file("line.json", model.dump());
  const Outcome outcome = graphrun({model_, "--save-weights", path("w.npz")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(has(outcome.err, "it began with the op")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "has the weights after step")) << outcome.err;
  const Json arrays = Json::parse(graphrun({"show", "--weights", path("w.npz"), "--json"}).out)["arrays"];
  ASSERT_GT(arrays.size(), 0u);
  for (const Json& array : arrays) EXPECT_EQ(array["finite"], array["elements"]) << array;
  const Outcome without = graphrun({model_, "-q", "--no-nan-trace"});
  EXPECT_EQ(without.code, 1);
  EXPECT_FALSE(has(without.err, "it began")) << without.err;
}

}  // namespace
}  // namespace graphrun::testing
