// `plan` except its tables: buffers of a file, CSV, HTML page, lock files, memory budget.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "fixture.h"
#include "support/no_slack.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun::testing {
namespace {

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) result.push_back(cell);
  return result;
}

// First overlap in the lines of an output, from a pairwise check that is independent of the planner.
std::string fault_of(const std::vector<std::string>& csv, std::uint64_t height) {
  struct Row {
    long lower, upper;
    std::uint64_t size, offset;
  };
  std::vector<Row> rows;
  for (std::size_t i = 1; i < csv.size(); ++i) {
    const std::vector<std::string> c = cells(csv[i]);
    rows.push_back({std::stol(c[1]), std::stol(c[2]), std::stoull(c[3]), std::stoull(c.back())});
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].offset + rows[i].size > height) return csv[i + 1] + " is above " + std::to_string(height);
    for (std::size_t k = 0; k < i; ++k) {
      const Row &a = rows[i], &b = rows[k];
      if (a.lower < b.upper && b.lower < a.upper && a.offset < b.offset + b.size && b.offset < a.offset + a.size)
        return csv[i + 1] + " overlaps " + csv[k + 1];
    }
  }
  return {};
}

class Buffers : public Cli {
 protected:
  // Twelve rows that fit 12 without a byte to spare.
  const std::string tight_ =
      file("in.csv",
           "size,id,upper,lower\n"
           "4,a,3,0\n8,b,3,0\n4,c,9,3\n4,d,9,3\n4,e,9,3\n3,f,12,9\n3,g,21,9\n3,h,21,9\n3,i,21,9\n"
           "3,j,21,12\n4,k,21,12\n");
};

TEST_F(Buffers, ArePackedAndWrittenInTheOrderOfTheFile) {
  const std::string out = (folder_ / "out.csv").string();
  const std::string in =
      file("small.csv", "id,lower,upper,size\r\nb1,0,3,4\r\nb2,3,9,4\r\n\r\nb3,0,9,4\r\n\"b,4\",9,21,4\n");
  const Outcome packed = graphrun({"plan", "--buffers", in, "--capacity", "8", "-o", out});
  EXPECT_EQ(packed.code, 0) << packed.err;
  for (const char* part : {"4 buffers", "height", "8 bytes", "optimal", "fits"})
    EXPECT_TRUE(has(packed.out, part)) << packed.out;
  const std::vector<std::string> csv = lines(test::content_of(out));
  ASSERT_EQ(csv.size(), 5u);
  EXPECT_EQ(csv[0], "id,lower,upper,size,offset");
  EXPECT_EQ(csv[1].substr(0, 9), "b1,0,3,4,");
  EXPECT_EQ(csv[4].substr(0, 5), "\"b,4\"");
  EXPECT_EQ(graphrun({"plan", "--buffers", in, "--csv"}).out, test::content_of(out));
}

TEST_F(Buffers, WithoutACapacityTheHeightIsAsLowAsCanBe) {
  const Outcome packed = graphrun({"plan", "--buffers", tight_, "--json"});
  ASSERT_EQ(packed.code, 0) << packed.err;
  const Json json = Json::parse(packed.out);
  EXPECT_EQ(keys(json), (std::vector<std::string>{"buffers", "height", "lower_bound", "proven", "optimal", "seconds"}));
  EXPECT_EQ(json["buffers"], 11);
  EXPECT_EQ(json["optimal"], true);
  EXPECT_EQ(json["height"], json["proven"]);
  const std::vector<std::string> csv = lines(graphrun({"plan", "--buffers", tight_, "--csv"}).out);
  EXPECT_EQ(fault_of(csv, json["height"]), "");
}

TEST_F(Buffers, OffsetsAreMultiplesOfTheirAlignments) {
  const std::string in =
      file("aligned.csv", "id,lower,upper,size,alignment\na,0,2,3,1\nb,0,2,5,8\nc,1,3,4,4\nd,1,3,1,1\n");
  const Outcome packed = graphrun({"plan", "--buffers", in, "--csv"});
  ASSERT_EQ(packed.code, 0) << packed.err;
  const std::vector<std::string> csv = lines(packed.out);
  EXPECT_EQ(csv[0], "id,lower,upper,size,alignment,offset");
  for (std::size_t i = 1; i < csv.size(); ++i)
    EXPECT_EQ(std::stoi(cells(csv[i])[5]) % std::stoi(cells(csv[i])[4]), 0) << csv[i];
  EXPECT_EQ(fault_of(csv, 13), "");
}

TEST_F(Buffers, WhatDoesNotFitIsExitCode3AndNoFile) {
  const std::string out = (folder_ / "out.csv").string();
  const Outcome rejected = graphrun({"plan", "--buffers", tight_, "--capacity=11", "--output", out});
  EXPECT_EQ(rejected.code, 3);
  EXPECT_EQ(rejected.out, "");
  EXPECT_TRUE(has(rejected.err, "no packing fits 11 bytes: at least")) << rejected.err;
  EXPECT_FALSE(std::filesystem::exists(out));
  // Without slack: pinwheels at few times take long, straight cuts do not.
  const auto problem = [&](const test::NoSlack& how) {
    std::string text = "id,lower,upper,size\n";
    int id = 0;
    for (const plan::Interval& piece : test::cut_to_pieces(how, 1))
      text += std::to_string(id++) + "," + std::to_string(piece.first) + "," + std::to_string(piece.last + 1) + "," +
              std::to_string(piece.size) + "\n";
    return file("problem.csv", text);
  };
  const Outcome late =
      graphrun({"plan", "--buffers", problem({40, 1 << 20, 400, 50}), "--time-limit=0", "--capacity=1048576"});
  EXPECT_EQ(late.code, 3) << late.out;
  EXPECT_TRUE(has(late.err, "was found in")) << late.err;
  EXPECT_TRUE(has(late.err, "--time-limit")) << late.err;
  const Outcome packed =
      graphrun({"plan", "--buffers", problem({1000, 1 << 20, 300}), "--capacity=1048576", "-o", out});
  EXPECT_EQ(packed.code, 0) << packed.err;
  EXPECT_EQ(fault_of(lines(test::content_of(out)), 1 << 20), "");
}

TEST_F(Buffers, BadLinesAreReportedWithTheirPlace) {
  const std::string bad = file("bad.csv", "id,lower,upper,size\na,0,3,4\nb,3,3,1\nc,0,x,1\nd,0,1\na,0,1,1\ne,0,1,-5\n");
  const Outcome outcome = graphrun({"plan", "--buffers", bad});
  expect_rejected(outcome, {"bad.csv:3:5: upper: expected more than lower (3), got 3",
                            "bad.csv:4:5: upper: expected a whole number of 64 bits, got 'x'",
                            "bad.csv:5:1: 3 cells, the header has 4", "bad.csv:6:1: duplicate id 'a', first in line 2",
                            "bad.csv:7:7: size: expected a whole number from 0 on, got '-5'"});
  expect_rejected(graphrun({"plan", "--buffers", file("empty.csv", "")}), {"empty.csv", "no header"});
  expect_rejected(graphrun({"plan", "--buffers", file("names.csv", "id,lower,uper,size\n")}),
                  {"names.csv:1:1: no column 'upper'", "did you mean 'uper'?"});
  expect_rejected(graphrun({"plan", "--buffers",
                            file("huge.csv",
                                 "id,lower,upper,size\na,0,1,9223372036854775807\n"
                                 "b,0,1,9223372036854775807\n")}),
                  {"huge.csv:3:1", "63 bits"});
  expect_rejected(graphrun({"plan", "--buffers", folder_.string()}), {"Is a directory"});
  expect_rejected(graphrun({"plan", "--buffers", "nowhere.csv"}), {"cannot read 'nowhere.csv'"});
  expect_rejected(graphrun({"plan", "--buffers", tight_, "-o", tight_}), {"is a file that is read"});
  expect_rejected(graphrun({"plan", "--buffers", tight_, "--executor=cpu"}), {"--executor goes with a model"});
  expect_rejected(graphrun({"plan", model_, "--capacity=9"}), {"--capacity and --time-limit go with --buffers"});
  const Outcome none = graphrun({"plan", "--buffers", file("none.csv", "id,lower,upper,size\n"), "--csv"});
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_EQ(none.out, "id,lower,upper,size,offset\n");
}

using PlanForms = Cli;

TEST_F(PlanForms, CsvIsWhatOtherSolversRead) {
  const Json plan = Json::parse(graphrun({"plan", model_, "--json"}).out);
  const Outcome outcome = graphrun({"plan", model_, "--csv"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> csv = lines(outcome.out);
  EXPECT_EQ(csv[0], "id,lower,upper,size,offset");
  EXPECT_GT(csv.size(), 10u);
  EXPECT_EQ(fault_of(csv, plan["arena_bytes"]), "");
  const std::string path = (folder_ / "plan.csv").string();
  EXPECT_EQ(graphrun({"plan", model_, "--csv", "-o", path}).code, 0);
  EXPECT_EQ(test::content_of(path), outcome.out);
  EXPECT_EQ(graphrun({"plan", "--buffers", path, "--capacity", plan["arena_bytes"].dump()}).code, 0);
}

// Networks that train at a time share no memory on cpu.
TEST_F(PlanForms, CountsTheMemoryOfNetworksAtATime) {
  const Json plan = Json::parse(graphrun({"plan", model_, "--no-fuse", "--at-once=7", "--json"}).out);
  const Outcome trained = graphrun({model_, "--no-fuse", "--threads=1", "--verbose"});
  const std::string label = "allocated_bytes: ";
  const std::size_t at = trained.err.find(label);
  ASSERT_NE(at, std::string::npos) << trained.err;
  EXPECT_EQ(plan["at_once"]["arena_bytes"], 7 * std::stoull(trained.err.substr(at + label.size())));
  EXPECT_EQ(plan["at_once"]["data_bytes"], 7 * plan["bytes_by_kind"]["data"].get<int>());
  EXPECT_TRUE(has(graphrun({"plan", model_, "--at-once=7"}).out, "at once       7 networks: "));
}

TEST_F(PlanForms, ThePageStandsAlone) {
  const Outcome outcome = graphrun({"plan", model_, "--html"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"<!DOCTYPE html>", "Memory plan of line on cpu", "The peak", "The largest values",
                           "without regions", "prefers-color-scheme: dark", "<img"})
    EXPECT_TRUE(has(outcome.out, part)) << part;
  for (const char* part : {"<script", "src=\"http", "href="}) EXPECT_FALSE(has(outcome.out, part)) << part;
}

TEST_F(PlanForms, ALockTellsOfAnotherPlan) {
  const std::string lock = (folder_ / "plan.lock").string();
  ASSERT_EQ(graphrun({"plan", model_, "--lock", lock}).code, 0);
  const std::string before = test::content_of(lock);
  EXPECT_TRUE(has(before, "graphrun plan lock 1\nprogram line for host\n")) << before;
  EXPECT_EQ(graphrun({"plan", model_, "--check", lock}).code, 0);
  const Outcome other = graphrun({"plan", model_, "--batch=2", "--check", lock, "--lock", lock});
  EXPECT_EQ(other.code, 3);
  EXPECT_TRUE(has(other.err, "plan.lock' is the snapshot of another plan")) << other.err;
  for (const char* part : {"- data/train/x: data f32(4, 1)", "\n+ "}) EXPECT_TRUE(has(other.out, part)) << other.out;
  EXPECT_EQ(test::content_of(lock), before) << "a lock that does not hold is not replaced";
  // Shifted offsets are only counted.
  const Outcome wider = graphrun({"plan", model_, "--set", "train.optimizer=momentum", "--check", lock});
  EXPECT_EQ(wider.code, 3);
  EXPECT_TRUE(has(wider.out, "+ p.W:velocity: slot")) << wider.out;
  EXPECT_TRUE(has(wider.out, "more lines differ in an offset or in the number of a step\n")) << wider.out;
  EXPECT_FALSE(has(wider.out, "- p.W:")) << wider.out;
  expect_rejected(graphrun({"plan", model_, "--check", model_}), {"is not a plan snapshot"});
  expect_rejected(graphrun({"plan", model_, "--check", "/dev/zero"}), {"/dev/zero", "it is a device"});
  expect_rejected(graphrun({"plan", model_, "--check", folder_.string()}), {"Is a directory"});
  expect_rejected(graphrun({"plan", model_, "--check", "nowhere.lock"}), {"cannot read 'nowhere.lock'"});
  expect_rejected(graphrun({"plan", model_, "--lock", "/nowhere/plan.lock"}), {"/nowhere/plan.lock"});
}

using Budget = Cli;

TEST_F(Budget, RejectsALargerPlanAndNamesABatchThatFits) {
  const std::string path = file("wide.json", R"json({
    "format": 1, "name": "wide", "data": {"train": {"random": {"rows": 4000, "seed": 1,
      "columns": {"a": {"normal": 1, "shape": [16]}, "b": {"normal": 1, "shape": [1]}}}, "x": "a", "y": "b"}},
    "inputs": {"x": ["batch", 16], "y": ["batch", 1]},
    "graph": [{"name": "h", "op": "dense", "inputs": ["x"], "units": 64, "activation": "tanh"},
              {"name": "p", "op": "dense", "inputs": ["h"], "units": 1}, "loss = mean((p - y) ^ 2)"],
    "outputs": {"p": "y"},
    "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.01}}, "epochs": 1}})json");
  const Outcome whole = graphrun({"plan", path, "--json", "--no-fuse"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  const std::uint64_t need = Json::parse(whole.out)["arena_bytes"];
  const std::string limit = std::to_string(need / 2);
  for (const char* verb : {"train", "plan"}) {
    const Outcome rejected = graphrun({verb, path, "--no-fuse", "--max-memory", limit});
    EXPECT_EQ(rejected.code, 3) << rejected.err;
    EXPECT_EQ(rejected.out, "");
    for (const std::string& part : {"the plan needs " + std::to_string(need) + " bytes, max_memory allows " + limit,
                                    std::string("the largest values: "), std::string("--batch=")})
      EXPECT_TRUE(has(rejected.err, part)) << rejected.err;
    const std::size_t at = rejected.err.find("--batch=");
    const int batch = std::stoi(rejected.err.substr(at + 8));
    EXPECT_EQ(graphrun({verb, path, "--no-fuse", "--max-memory", limit, "--batch", std::to_string(batch)}).code, 0);
    EXPECT_EQ(graphrun({verb, path, "--no-fuse", "--max-memory", limit, "--batch", std::to_string(batch + 1)}).code, 3);
    const Outcome largest = graphrun({verb, path, "--no-fuse", "--max-memory", limit, "--batch=max", "--json"});
    ASSERT_EQ(largest.code, 0) << largest.err;
    EXPECT_LE(Json::parse(largest.out)["arena_bytes"].get<std::uint64_t>(), need / 2);
    if (std::string_view(verb) == "plan") {
      EXPECT_EQ(Json::parse(largest.out)["phases"][0]["capacity"], batch);
    }
  }
  Json roomy = Json::parse(graphrun({"plan", path, "--no-fuse", "--max-memory=1GiB", "--batch=max", "--json"}).out);
  EXPECT_EQ(roomy.erase("budget"), 1u);
  EXPECT_EQ(roomy, Json::parse(graphrun({"plan", path, "--no-fuse", "--json"}).out));
  expect_rejected(graphrun({"plan", path, "--max-memory=lots"}), {"expected a size, got \"lots\"", "512MiB"});
  expect_rejected(graphrun({"plan", path, "--batch=most"}), {"\"all\" or \"max\""});
}

// The losses of many small batches are kept, so that the smallest batch has not the smallest plan.
TEST_F(Budget, TheLargestBatchIsFoundBetweenSmallerAndLargerOnesThatDoNotFit) {
  const std::string path = file("small.json", R"json({
    "format": 1, "name": "small", "data": {"train": {"random": {"rows": 2000, "seed": 1,
      "columns": {"a": {"normal": 1, "shape": [2]}, "b": {"normal": 1, "shape": [1]}}}, "x": "a", "y": "b"}},
    "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
    "graph": [{"name": "p", "op": "dense", "inputs": ["x"], "units": 1}, "loss = mean((p - y) ^ 2)"],
    "outputs": {"p": "y"},
    "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.01}}, "epochs": 1}})json");
  const auto plan = [&](const std::string& batch, const std::string& limit) {
    return graphrun({"plan", path, "--json", "--no-fuse", "--batch", batch, "--max-memory", limit});
  };
  const auto bytes = [&](const std::string& batch) {
    return Json::parse(plan(batch, "1G").out)["arena_bytes"].get<std::uint64_t>();
  };
  const std::uint64_t limit = bytes("40");
  ASSERT_GT(bytes("1"), limit);
  ASSERT_GT(bytes("2000"), limit);
  const Outcome largest = plan("max", std::to_string(limit));
  ASSERT_EQ(largest.code, 0) << largest.err;
  const int batch = Json::parse(largest.out)["phases"][0]["capacity"];
  EXPECT_GE(batch, 40);
  EXPECT_EQ(plan(std::to_string(batch), std::to_string(limit)).code, 0);
  const Outcome rejected = plan("1", std::to_string(limit));
  EXPECT_EQ(rejected.code, 3);
  const Outcome larger = plan("2000", std::to_string(limit));
  EXPECT_TRUE(has(larger.err, "--batch=" + std::to_string(batch) + " fits")) << larger.err;
}

// Elsewhere "max" would be another number.
TEST_F(Budget, TheBatchThatWasChosenIsWrittenDown) {
  const std::string weights = (folder_ / "w.safetensors").string();
  const Outcome outcome = graphrun({model_, "--batch=max", "--epochs=1", "--save-weights", weights});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "batch          4, the largest that fits")) << outcome.out;
  EXPECT_EQ(Json::parse(graphrun({"show", weights, "--json"}).out)["train"]["batch"], 4);
  EXPECT_EQ(Json::parse(graphrun({model_, "--batch=max", "--epochs=1", "--json"}).out)["settings"]["batch"], 4);
}

// Less than the plan takes as it is, but not less than it can do with.
TEST_F(Budget, ReportsWhatIsComputedAgain) {
  const std::string path = file("deep.json", R"json({
    "format": 1, "name": "deep", "data": {"train": {"random": {"rows": 500, "seed": 1,
      "columns": {"a": {"normal": 1, "shape": [64]}, "b": {"normal": 1, "shape": [1]}}}, "x": "a", "y": "b"}},
    "inputs": {"x": ["batch", 64], "y": ["batch", 1]},
    "graph": [{"name": "h", "op": "dense", "inputs": ["x"], "units": 64, "activation": "tanh"},
              "d = dropout(h, rate=0.25)",
              {"name": "k", "op": "dense", "inputs": ["d"], "units": 64, "activation": "sigmoid"},
              {"name": "p", "op": "dense", "inputs": ["k"], "units": 1}, "loss = mean((p - y) ^ 2)"],
    "outputs": {"p": "y"},
    "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.01}}, "batch": 200, "epochs": 2}})json");
  const Json whole = Json::parse(graphrun({"plan", path, "--json", "--no-fuse"}).out);
  EXPECT_FALSE(whole.contains("budget"));
  const std::uint64_t need = whole["arena_bytes"], states = whole["peak"]["state_bytes"];
  const std::string limit = "--max-memory=" + std::to_string(need - (need - states) / 5);
  const Json plan = Json::parse(graphrun({"plan", path, "--json", "--no-fuse", limit}).out);
  const Json& budget = plan["budget"];
  EXPECT_EQ(keys(budget), (std::vector<std::string>{"limit", "arena_bytes_before", "workspaces", "shares_all",
                                                    "borrows", "reordered", "recomputed"}));
  EXPECT_EQ(budget["arena_bytes_before"], need);
  ASSERT_FALSE(budget["recomputed"].empty());
  const std::string value = budget["recomputed"][0]["value"];
  EXPECT_TRUE(has(graphrun({"plan", path, "--no-fuse", limit}).out, value + " computed again before "));
  EXPECT_TRUE(has(graphrun({"plan", path, "--no-fuse", limit, "--program"}).out, value + ":again"));
  const Outcome text = graphrun({path, "--no-fuse", limit, "--quiet"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(has(text.out, "budget ") && has(text.out, " steps compute something again")) << text.out;
  const Json run = Json::parse(graphrun({path, "--no-fuse", limit, "--json"}).out);
  EXPECT_EQ(run["budget"], budget);
  EXPECT_EQ(run["weights_hash"], Json::parse(graphrun({path, "--no-fuse", "--json"}).out)["weights_hash"]);
  // No message if the plan fits.
  const Json fits = Json::parse(graphrun({"plan", path, "--json", "--no-fuse", "--max-memory=1G"}).out);
  EXPECT_TRUE(fits["budget"]["recomputed"].empty());
  EXPECT_FALSE(Json::parse(graphrun({path, "--no-fuse", "--max-memory=1G", "--json"}).out).contains("budget"));
}

// The digits are bytes in an IDX file. Their data sets are read by minibatch only, in tiles or by single steps.
TEST_F(Buffers, OfImagesHaveAByteForEachNumber) {
  const std::string path = source_folder() + "/models/digits_cnn.json";
  const std::string text = graphrun({"plan", path}).out;
  EXPECT_TRUE(has(text, "            80,448  data        u8(1257, 8, 8)          data/train/x\n")) << text;
  const Json plan = Json::parse(graphrun({"plan", path, "--json"}).out);
  std::size_t found = 0;
  for (const Json& buffer : plan["buffers"]) {
    if (buffer["name"] != "data/train/x") continue;
    ++found;
    EXPECT_EQ(buffer["dtype"], "u8");
    EXPECT_EQ(buffer["bytes"], 1257 * 64);
  }
  EXPECT_EQ(found, 1U);
  const std::string all = graphrun({"plan", path, "--set", "train.batch=all", "--set", "train.shuffle=false"}).out;
  EXPECT_TRUE(has(all, "data/train/x is stored in 4 bytes per element, not in 1: a batch of all its rows")) << all;
  const std::string plugin = graphrun({"plan", path, "--executor=" GRAPHRUN_MATMUL_PLUGIN}).out;
  EXPECT_TRUE(has(plugin, "data/train/x is stored in 4 bytes per element, not in 1: matmul_plugin does not")) << plugin;
}

}  // namespace
}  // namespace graphrun::testing
