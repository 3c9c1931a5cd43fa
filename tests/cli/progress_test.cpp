// Progress output of a training run, with and without a terminal.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "fixture.h"

namespace graphrun::testing {
namespace {

TEST_F(Cli, WithoutATerminalThereAreLinesAndNoEscapes) {
  const Outcome outcome = graphrun({model_});
  EXPECT_FALSE(has(outcome.err + outcome.out, "\033"));
  EXPECT_FALSE(has(outcome.err, "\r"));
  EXPECT_EQ(lines(outcome.err).size(), 20u) << outcome.err;
  EXPECT_EQ(graphrun({model_, "--quiet"}).err, "");
}

TEST_F(Cli, WithoutATerminalThereAreFewLines) {
  const Outcome by_default = graphrun({model_, "--epochs=5000"});
  EXPECT_EQ(lines(by_default.err).size(), 20u) << by_default.err;
  EXPECT_TRUE(has(lines(by_default.err).back(), "epoch 5000/5000"));
  EXPECT_EQ(lines(graphrun({model_, "--epochs=3"}).err).size(), 3u);
  EXPECT_EQ(lines(graphrun({model_, "--epochs=5000", "--set", "train.log_every=50"}).err).size(), 100u);  // as it says
}

// Losses of an earlier epoch are shown with their epoch.
TEST_F(Cli, ValidationIsReportedWithItsEpoch) {
  Json model = Json::parse(kLine);
  model["data"]["validation"] = model["data"]["test"];
  model["train"]["log_every"] = 1;
  model["train"]["evaluate_every"] = 4;
  const std::vector<std::string> told = lines(graphrun({file("validated.json", model.dump()), "--epochs=9"}).err);
  ASSERT_EQ(told.size(), 9u);
  const auto figures = [](const std::string& line) {
    const std::size_t at = line.find(" loss ", line.find("validation"));
    return line.substr(at, line.find("  ", at) - at);
  };
  for (std::size_t epoch = 1; epoch <= 9; ++epoch) {
    const std::string& line = told[epoch - 1];
    EXPECT_EQ(has(line, "validation"), epoch >= 4) << line;
    EXPECT_EQ(has(line, "  validation loss "), epoch % 4 == 0) << line;
    if (epoch > 4 && epoch % 4 != 0) {
      const std::size_t at = epoch / 4 * 4;
      EXPECT_TRUE(has(line, "  validation@" + std::to_string(at) + " loss ")) << line;
      EXPECT_EQ(figures(line), figures(told[at - 1]));
    }
  }
}

TEST_F(Cli, ProgressWithMetricsFitsTheScreen) {
  if (const std::string why = no_terminal(); !why.empty()) GTEST_SKIP() << why;
  Json model = Json::parse(kLine);
  model["data"]["validation"] = model["data"]["test"];
  model["train"]["metrics"] = {"mse", "rmse", "mae", "r2"};
  model["train"]["evaluate_every"] = 3;
  const std::string path = file("validated.json", model.dump());
  for (const unsigned short columns : std::initializer_list<unsigned short>{20, 60, 80, 200}) {
    SCOPED_TRACE(columns);
    ProcessOptions options{.terminal = true};
    options.columns = columns;
    std::istringstream stream(graphrun({path, "--epochs=100000"}, options).err);
    std::string last;
    for (std::string drawn; std::getline(stream, drawn, '\r');) {
      EXPECT_LT(drawn.size(), columns + 0u) << drawn;
      if (has(drawn, "loss")) last = drawn;
      if (columns >= 80 && has(drawn, "ETA")) {
        EXPECT_TRUE(has(drawn, "validation")) << drawn;
        // The rate is dropped first: 80 columns have no space for it next to two losses like 1.344e-12.
        const std::size_t length = drawn.find_last_not_of(" \n") + 1;
        EXPECT_TRUE(has(drawn, "/s  ETA ") || length + std::string_view("  9.9M/s").size() >= columns) << drawn;
      }
      // Complete fields only: each name has its number.
      const std::size_t end = drawn.find_last_not_of(" \n");
      EXPECT_TRUE(end == std::string::npos || columns == 20 || std::isdigit(drawn[end]) || drawn.find("/s") < end + 2)
          << drawn;
    }
    EXPECT_EQ(has(last, "validation@99999 loss"), columns > 60) << last;
    EXPECT_EQ(has(last, " rmse "), columns > 80) << last;
    EXPECT_EQ(has(last, " r2 "), columns > 80) << last;
  }
}

TEST_F(Cli, SomethingIsSaidBeforeTheFirstEpochHasEnded) {
  Json model = Json::parse(kLine);  // an epoch takes some seconds
  model["data"] = Json::parse(R"js({"train": {"random": {"rows": 3000, "columns":
      {"a": {"normal": 1, "shape": [1]}, "b": {"normal": 1, "shape": [1]}}}, "x": "a", "y": "b"}})js");
  model["graph"] = Json::parse(R"js([{"name": "g", "op": "dense", "inputs": ["x"], "units": 256},
      {"name": "h", "op": "dense", "inputs": ["g"], "units": 256},
      {"name": "p", "op": "dense", "inputs": ["h"], "units": 1}, "loss = mean((p - y) ^ 2)"])js");
  const std::string path = file("long.json", model.dump());
  for (const bool terminal : {false, true}) {
    if (const std::string why = no_terminal(); terminal && !why.empty())
      GTEST_SKIP() << "all but the terminal's part passed: " << why;
    bool told = false;
    ProcessOptions options{.terminal = terminal};
    options.on_stderr = [&](pid_t process, std::string_view err) {
      told = told || has(err, " of 3000");
      if (told) kill(process, SIGINT);
    };
    const Outcome outcome = graphrun(
        {path, "--batch=1", "--executor=ref", "--epochs=1000", "--set", "train.optimizer.sgd.lr=1e-6"}, options);
    EXPECT_TRUE(told) << outcome.err << outcome.out;
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "epoch 1/1000  step ")) << outcome.err;
  }
}

// Slow data from a pipe: graphrun reports the wait after a second, and again later.
TEST_F(Cli, WhatIsReadIsReportedWhenItTakesLong) {
  Json model = Json::parse(kLine);
  model["data"] = Json::parse(R"({"train": {"csv": "/dev/stdin", "x": ["a"], "y": ["b"]}})");
  const std::string path = file("piped.json", model.dump());
  const std::string command =
      "(printf 'a,b\n1,3\n'; sleep 2.5; printf '2,5\n') | exec '" GRAPHRUN_CLI "' '" + path + "' ";
  const Outcome outcome = run({"/bin/sh", "-c", command});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> told = lines(outcome.err);
  ASSERT_GT(told.size(), 2u) << outcome.err;
  EXPECT_EQ(told[0], "reading '/dev/stdin' ...");
  EXPECT_EQ(told[1], "reading '/dev/stdin' ...");
  EXPECT_TRUE(told[2].starts_with("epoch ")) << outcome.err;
  EXPECT_EQ(run({"/bin/sh", "-c", command + "--quiet"}).err, "");
}

TEST_F(Cli, OnATerminalOneLineIsRewritten) {
  if (const std::string why = no_terminal(); !why.empty()) GTEST_SKIP() << why;
  const Outcome outcome = graphrun({model_, "--epochs=50"}, {.terminal = true});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_EQ(outcome.err.front(), '\r');
  EXPECT_TRUE(has(outcome.err, "epoch 50/50")) << outcome.err;  // the last report is always shown
  std::istringstream stream(outcome.err);
  for (std::string drawn; std::getline(stream, drawn, '\r');) EXPECT_LT(drawn.size(), 40u) << drawn;  // never wraps
  const Outcome dumb = graphrun({model_, "--epochs=15"}, {.environment = {"TERM=dumb"}, .terminal = true});
  EXPECT_EQ(std::count(dumb.err.begin(), dumb.err.end(), '\n'), 15) << dumb.err;
}

TEST_F(Cli, BenchSaysHowFarItIsOnATerminalOnly) {
  const std::vector<std::string> bench = {"bench", model_, "--steps=10", "--idle-gap-ms=50"};
  EXPECT_EQ(graphrun(bench).err, "");
  if (const std::string why = no_terminal(); !why.empty()) GTEST_SKIP() << why;
  const Outcome shown = graphrun(bench, {.terminal = true});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_TRUE(has(shown.err, "steps one at a time: ")) << shown.err;
  EXPECT_EQ(shown.err.back(), '\r') << "the line is wiped";
  for (const char* flag : {"--quiet", "--json"}) {
    std::vector<std::string> words = bench;
    words.emplace_back(flag);
    EXPECT_EQ(graphrun(words, {.terminal = true}).err, "") << flag;
  }
}

TEST_F(Cli, NoColorIsHonoured) {
  if (const std::string why = no_terminal(); !why.empty()) GTEST_SKIP() << why;
  Json model = Json::parse(kLine);  // a constant column is centred with a warning
  model["data"]["train"]["inline"]["x"] = {{2}, {2}, {2}, {2}};
  model["data"]["transform"] = Json::parse(R"({"x": ["standardize"]})");
  const std::string path = file("warned.json", model.dump());
  const Outcome colourful = graphrun({path}, {.terminal = true});
  EXPECT_EQ(colourful.code, 0) << colourful.err;
  EXPECT_TRUE(has(colourful.err, "\033[33mwarning:")) << colourful.err;
  const Outcome plain = graphrun({path}, {.environment = {"NO_COLOR=1"}, .terminal = true});
  EXPECT_TRUE(has(plain.err, "warning:"));
  EXPECT_FALSE(has(plain.err, "\033"));
  const Outcome json = graphrun({path, "--diagnostics=json"});
  EXPECT_EQ(Json::parse(json.err).at(0).at("severity"), "warning");
  EXPECT_EQ(graphrun({path, "--quiet", "--diagnostics=json"}).err, "");
}

}  // namespace
}  // namespace graphrun::testing
