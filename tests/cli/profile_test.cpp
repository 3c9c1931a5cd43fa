// train --profile: the table, the member of --json and the timeline.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "process.h"
#include "support/temporary_folder.h"

namespace graphrun::testing {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kProfiled = R"json({
  "format": 1,
  "name": "line",
  "data": {"train": {"inline": {"x": [[0], [1], [2], [3]], "y": [[1], [3], [5], [7]]}}},
  "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
  "graph": [{"name": "p", "op": "dense", "inputs": ["x"], "units": 1}, "loss = mean((p - y) ^ 2)"],
  "outputs": {"p": "y"},
  "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.05}}, "epochs": 32}
})json";

class CliProfile : public ::testing::Test {
 protected:
  Outcome train(std::vector<std::string> words) const {
    words.insert(words.begin(), {GRAPHRUN_CLI, "train", model_, "--quiet"});
    return run(words);
  }
  std::string path(const char* name) const { return folder_.file(name); }

  const test::TemporaryFolder folder_;
  const std::string model_ = folder_.write("line.json", kProfiled);
};

TEST_F(CliProfile, Table) {
  const Outcome outcome = train({"--profile", "--no-fuse"});  // a region is one row
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("profile: the host's clock\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("train: 2 of 32 steps were timed\n"), std::string::npos) << outcome.out;
  // One line for each row: type (for the first of a group), share, time, calls, average, least, most, name.
  std::istringstream lines(outcome.out.substr(outcome.out.find("profile: ")));
  double sum = 0;
  bool in_train = false, matmul = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("steps of ") != std::string::npos) in_train = line.find("steps of train:") != std::string::npos;
    const std::size_t percent = line.find('%');
    if (!in_train || percent == std::string::npos) continue;
    sum += std::stod(line.substr(line.rfind(' ', percent) + 1));
    std::istringstream rest(line.substr(percent + 1));
    std::string time, average, least, most, name;
    std::uint64_t calls = 0;
    rest >> time >> calls >> average >> least >> most >> name;
    EXPECT_EQ(calls % 2, 0u) << line;
    EXPECT_EQ(time.back(), 's') << line;
    matmul = matmul || name == "matmul";
  }
  EXPECT_NEAR(sum, 100, 0.1);
  EXPECT_TRUE(matmul) << outcome.out;
}

TEST_F(CliProfile, JsonAndTimeline) {
  const Outcome outcome = train({"--json", "--profile-trace", path("trace.json")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json profile = Json::parse(outcome.out).at("profile");
  EXPECT_EQ(profile.at("source"), "the host's clock");
  ASSERT_FALSE(profile.at("rows").empty());
  std::uint64_t calls = 0;
  for (const Json& row : profile.at("rows")) {
    for (const char* key : {"type", "name", "calls", "percent", "seconds", "average", "min", "max"})
      EXPECT_TRUE(row.contains(key)) << key;
    calls += row.at("calls").get<std::uint64_t>();
  }
  std::ifstream file(path("trace.json"));
  const Json trace = Json::parse(file);
  std::uint64_t complete = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++complete;
    EXPECT_GE(event.at("ts").get<double>(), 0);
    EXPECT_GE(event.at("dur").get<double>(), 0);
  }
  EXPECT_EQ(complete, calls);
}

TEST_F(CliProfile, OffByDefault) {
  const Outcome outcome = train({"--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(Json::parse(outcome.out).contains("profile"));
}

TEST_F(CliProfile, ATraceThatCannotBeWrittenIsFoundBeforeTheTraining) {
  const Outcome outcome = train({"--profile-trace", path("no/such/folder.json")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("cannot write"), std::string::npos) << outcome.err;
}

TEST_F(CliProfile, ARunThatFailsLeavesItsLossesAndNoTrace) {
  const Outcome outcome = train(
      {"--profile-trace", path("trace.json"), "--losses", path("losses.txt"), "--set", "train.optimizer.sgd.lr=1e30"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(path("trace.json")));
  EXPECT_TRUE(std::filesystem::exists(path("losses.txt")));
}

}  // namespace
}  // namespace graphrun::testing
