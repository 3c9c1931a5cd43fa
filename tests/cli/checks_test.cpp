// Measurements and checks: bench, --assert-no-alloc, numerical health, devices, --executor=auto.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "fixture.h"

namespace graphrun::testing {
namespace {

class Checks : public Cli {
 protected:
  // On the plug-in that does `what` (misbehaving_executor.cpp).
  static Outcome oddly(const std::string& what, std::vector<std::string> words) {
    words.emplace_back("--executor=" GRAPHRUN_MISBEHAVING_EXECUTOR);
    return graphrun(words, {.environment = {"MISBEHAVING_EXECUTOR=" + what}});
  }
};

TEST_F(Checks, NoExecutorAllocatesAfterTheFirstStep) {
  Json model = Json::parse(kLine);
  model["data"]["validation"] = model["data"]["test"];
  const std::string path = file("validated.json", model.dump());
  for (const char* executor : {"cpu", "ref"}) {
    SCOPED_TRACE(executor);
    for (const bool terminal : {false, true}) {  // reports, evaluations, the log and the progress line are ours too
      if (terminal && !no_terminal().empty()) continue;
      const Outcome outcome = graphrun({path, "--assert-no-alloc", "--executor", executor, "--epochs=300", "--batch=3",
                                        "--set", "train.log_every=1", "--set", "train.evaluate_every=2", "--log",
                                        (folder_ / "log.csv").string(), "--losses", (folder_ / "losses.txt").string()},
                                       {.terminal = terminal});
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_TRUE(has(outcome.err, "--assert-no-alloc: none")) << outcome.err;
    }
  }
  EXPECT_EQ(graphrun({"bench", model_, "--assert-no-alloc", "--steps=500"}).code, 0);
  if (const std::string why = no_terminal(); !why.empty())
    GTEST_SKIP() << "all but the terminal's part passed: " << why;
}

TEST_F(Checks, WhatRunsByKernelsOfTheLibraryIsReported) {
  const std::string executor = "--executor=" GRAPHRUN_MATMUL_PLUGIN;  // has one kernel of its own
  const char* const told = "matmul_plugin has no kernel for sub: cpu's runs";
  const Outcome training = graphrun({model_, executor});
  EXPECT_EQ(training.code, 0) << training.err;
  EXPECT_TRUE(has(training.err, told)) << training.err;
  EXPECT_TRUE(has(graphrun({"plan", model_, executor}).out, told));
  EXPECT_TRUE(has(graphrun({"verify", model_, executor}).out, told));
  EXPECT_FALSE(Json::parse(graphrun({"plan", model_, executor, "--json"}).out)["fallbacks"].empty());
  EXPECT_TRUE(Json::parse(graphrun({"plan", model_, "--json"}).out)["fallbacks"].empty());
}

TEST_F(Checks, OnADeviceTheMathIsReportedAndRecorded) {
  const std::string weights = (folder_ / "w.npz").string();
  for (const std::string math : {"fast", "exact"}) {
    const std::string flag = "--math=" + math;
    const Outcome verified = oddly("device=0", {"verify", model_, flag});
    EXPECT_TRUE(has(verified.out, ", " + math + " math")) << verified.out << verified.err;
    EXPECT_EQ(Json::parse(oddly("device=0", {"verify", model_, flag, "--json"}).out)["math"], math);
    const Outcome trained = oddly("device=0", {model_, flag, "--json", "--save-weights", weights});
    ASSERT_EQ(trained.code, 0) << trained.err;
    EXPECT_EQ(Json::parse(trained.out)["math"], math);
    std::ifstream stream(weights, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    EXPECT_EQ(has(bytes, "train:math"), math == "fast");
    const Json again = Json::parse(graphrun({"eval", model_, "--weights", weights, "--json"}).out);
    EXPECT_EQ(again["weights_hash"], Json::parse(trained.out)["weights_hash"]);
    EXPECT_EQ(again["math"], "exact") << "it is of this run, on cpu";
  }
  EXPECT_EQ(Json::parse(oddly("device=0", {model_, "--json"}).out)["math"], "fast") << "by default";
  EXPECT_FALSE(has(graphrun({"verify", model_, "--math=fast"}).out, "math"));
}

TEST_F(Checks, OneByteIsCaughtWithStepCallAndSite) {
  for (const char* what : {"allocate", "allocate_in_thread"}) {
    const Outcome outcome = oddly(what + std::string("=7"), {model_, "--assert-no-alloc"});
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "malloc of 1 byte in step 7")) << outcome.err;
#if !defined(GRAPHRUN_SANITIZED) || \
    !defined(__clang__)  // there the sanitizer runtime, part of the program, calls malloc
    EXPECT_TRUE(has(outcome.err, "libmisbehaving_executor.so+0x")) << outcome.err;
#endif
#ifndef GRAPHRUN_SANITIZED  // they allocate for a new thread
    EXPECT_TRUE(has(outcome.err, "1 allocation after the first step")) << outcome.err;
#endif
    EXPECT_TRUE(has(outcome.out, "weights")) << "the results are there all the same";
  }
  const Outcome device = oddly("allocate_on_device=20", {model_, "--assert-no-alloc"});
  EXPECT_EQ(device.code, 3);
  EXPECT_TRUE(has(device.err, "cudaMalloc of 1 byte in step 20, at libmisbehaving_executor.so+0x")) << device.err;
  const Outcome bench = oddly("allocate=15", {"bench", model_, "--assert-no-alloc", "--steps=50"});
  EXPECT_EQ(bench.code, 3);
  EXPECT_TRUE(has(bench.err, "in step 15")) << bench.err;

  EXPECT_EQ(oddly("allocate=1", {model_, "--assert-no-alloc"}).code, 0);  // the first step may
  EXPECT_EQ(oddly("allocate=7", {model_}).code, 0);                       // nobody asked
  const Outcome json = oddly("allocate=7", {model_, "--assert-no-alloc", "--diagnostics=json"});
  EXPECT_EQ(Json::parse(json.err).at(0).at("code"), "check.allocation");
}

TEST_F(Checks, ACertificateStatesWhatWasCounted) {
  const std::string path = (folder_ / "run.json").string();
  const Outcome good = graphrun({model_, "--certificate", path, "--json"});
  ASSERT_EQ(good.code, 0) << good.err;
  const Json stated = Json::parse(test::content_of(path));
  EXPECT_TRUE(stated["holds"]);
  EXPECT_GT(stated["before"]["host"]["calls"], 100) << "reading, planning and loading";
  EXPECT_GT(stated["before"]["by_call"]["malloc"]["bytes"], 10000);
  EXPECT_EQ(stated["during"]["first_step"], 2);
  EXPECT_EQ(stated["during"]["last_step"], 20);
  for (const char* memory : {"host", "pinned", "device"}) EXPECT_EQ(stated["during"][memory]["calls"], 0) << memory;
  EXPECT_EQ(stated["weights_hash"], Json::parse(good.out)["weights_hash"]);
  EXPECT_EQ(stated["arena_bytes"], Json::parse(good.out)["arena_bytes"]);
  EXPECT_GT(stated["peak_rss_bytes"], stated["arena_bytes"]);

  const Outcome bad = oddly("allocate_on_device=10", {model_, "--certificate", path});
  EXPECT_EQ(bad.code, 3) << bad.err;
  const Json found = Json::parse(test::content_of(path));
  EXPECT_FALSE(found["holds"]);
  EXPECT_EQ(found["during"]["device"]["calls"], 1);
  EXPECT_EQ(found["during"]["by_call"]["cudaMalloc"]["bytes"], 1);
  EXPECT_EQ(found["model_hash"], stated["model_hash"]);
}

TEST_F(Checks, ANumberThatIsNotFiniteStopsTheRun) {
  const Outcome outcome = oddly("nan=7", {model_, "--epochs=100000", "--set", "train.log_every=10"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  for (const char* part : {"the loss is nan at step 7 (epoch 7)", "the same step stays finite"})
    EXPECT_TRUE(has(outcome.err, part)) << part << " is not in:\n" << outcome.err;
  EXPECT_FALSE(has(outcome.err, "epoch 10/")) << "it went on";
}

TEST_F(Checks, BenchTellsOfStepsAndOfTheFirst) {
  const Outcome outcome = graphrun({"bench", model_, "--steps=200", "--warmup=3", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(keys(result), (std::vector<std::string>{"model", "executor", "math", "target", "batch", "warmup", "steps",
                                                    "steps_per_second", "step_us", "start_us", "idle_gap_ms",
                                                    "deadline_us", "late", "arena_bytes", "lower_bound", "counters"}));
  EXPECT_EQ(result["steps"], 200);
  EXPECT_EQ(result["warmup"], 3);
  EXPECT_GT(result["steps_per_second"].get<double>(), 0);
  const Json& step = result["step_us"];
  EXPECT_EQ(keys(step), (std::vector<std::string>{"p50", "p90", "p99", "p99.9", "max", "worst_step"}));
  EXPECT_GT(step["p50"].get<double>(), 0);
  EXPECT_LE(step["p50"].get<double>(), step["p90"].get<double>());
  EXPECT_LE(step["p99"].get<double>(), step["p99.9"].get<double>());
  EXPECT_EQ(step["p99.9"], step["max"]);  // max of 200 steps
  EXPECT_GT(step["worst_step"].get<int>(), 3);
  EXPECT_LE(step["worst_step"].get<int>(), 203);
  EXPECT_EQ(keys(result["start_us"]),
            (std::vector<std::string>{"read_model_and_data", "plan", "load", "write", "first_step"}));
  const Outcome text = graphrun({"time", model_, "--steps=20"});
  EXPECT_EQ(text.code, 0);
  for (const char* part : {"steps/s", "p50", "p99.9", "max", "first step", "arena"})
    EXPECT_TRUE(has(text.out, part)) << part;
}

TEST_F(Checks, ALateStepIsExitCodeThreeAndNamed) {
  int worst = 0;
  for (int tries = 0; worst != 31 && tries < 20; ++tries) {  // a busy machine may hold up another step even longer
    const Outcome outcome = oddly("sleep=31", {"bench", model_, "--steps=100", "--deadline-us=15000", "--json"});
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    const Json result = Json::parse(outcome.out);
    worst = result["step_us"]["worst_step"].get<int>();
    EXPECT_TRUE(has(outcome.err, "the worst was step " + std::to_string(worst) + " with")) << outcome.err;
    EXPECT_GE(result["late"].get<int>(), 1);
    EXPECT_GE(result["step_us"]["max"].get<double>(), 20000);
  }
  EXPECT_EQ(worst, 31);
  EXPECT_EQ(oddly("sleep=5", {"bench", model_, "--steps=10", "--deadline-us=10000000"}).code, 0);  // while warming up
}

TEST_F(Checks, BenchHearsCtrlCInItsRunOfManySteps) {
  // 10 to warm up, 500 one by one, and as many in a run: here a few milliseconds of them.
  const Outcome outcome = oddly("interrupt=515", {"bench", model_, "--steps=500"});
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  const std::size_t end = outcome.out.find(" steps in a run)");
  ASSERT_NE(end, outcome.out.npos) << outcome.out;
  const std::size_t begin = outcome.out.rfind('(', end) + 1;
  EXPECT_LT(std::stoi(outcome.out.substr(begin, end - begin)), 300);
}

TEST_F(Checks, BenchCanIdleBetweenSteps) {
  const Outcome outcome = graphrun({"bench", model_, "--steps=20", "--idle-gap-ms=2", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result["idle_gap_ms"], 2);
  EXPECT_LT(result["step_us"]["p50"].get<double>(), 2000);  // the gap is not part of a step
  expect_rejected(graphrun({"bench", model_, "--steps=0"}), {"--steps must be a whole number from 1"});
  expect_rejected(graphrun({"bench", model_, "--idle-gap-ms=-1"}), {"--idle-gap-ms must be a number from 0"});
  expect_rejected(graphrun({model_, "--deadline-us=5"}), {"--deadline-us goes with bench, not with train"});
}

TEST_F(Checks, DevicesAreListedWhateverIsMissing) {
  const Outcome text = graphrun({"devices"});
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* part : {"cpu ", "core", "GiB free", "ref "}) EXPECT_TRUE(has(text.out, part)) << text.out;
  const Outcome outcome = graphrun({"device-query", "--json"}, {.environment = {"CUDA_VISIBLE_DEVICES="}});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(keys(result), (std::vector<std::string>{"devices", "missing"}));
  bool cpu = false;
  for (const Json& device : result["devices"]) {
    EXPECT_EQ(keys(device), (std::vector<std::string>{"id", "executor", "name", "capability", "units", "driver",
                                                      "memory_free", "memory_total"}));
    if (device["id"] != "cpu") continue;
    cpu = true;
    EXPECT_GE(device["units"].get<int>(), 1);
    EXPECT_GT(device["memory_total"].get<std::uint64_t>(), device["memory_free"].get<std::uint64_t>());
  }
  EXPECT_TRUE(cpu);
  ASSERT_EQ(result["missing"].size(), 1u) << "without a visible GPU";
  EXPECT_EQ(result["missing"][0]["executor"], "cuda");
  EXPECT_FALSE(has(result["missing"][0]["reason"].get<std::string>(), "\n"));
  expect_rejected(graphrun({"devices", model_}), {"devices does not take"});
}

TEST_F(Checks, AutoMeasuresSaysSoAndStartsAfresh) {
  const ProcessOptions no_gpu = {.environment = {"CUDA_VISIBLE_DEVICES="}};
  const Outcome outcome = graphrun({model_, "--executor=auto", "--json"}, no_gpu);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "auto: cpu ")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "s per step, cuda unavailable (")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "; using cpu")) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result["executor"], "cpu");
  const Json plain = Json::parse(graphrun({model_, "--executor=cpu", "--json"}).out);
  EXPECT_EQ(result["weights_hash"], plain["weights_hash"]);
  EXPECT_EQ(result["test"], plain["test"]);
  EXPECT_FALSE(has(graphrun({model_}, no_gpu).err, "auto"));  // never by default
  expect_rejected(graphrun({"plan", model_, "--executor=auto"}), {"'auto'", "has to be named"});
  expect_rejected(graphrun({model_, "--executor=auto", "--target=h200"}), {"--target"});
}

TEST_F(Checks, TheLogHasALineForEachReport) {
  Json model = Json::parse(kLine);
  model["data"]["validation"] = model["data"]["test"];
  model["train"]["log_every"] = 4;
  model["train"]["evaluate_every"] = 6;
  const std::string path = file("validated.json", model.dump()), log = (folder_ / "log.csv").string();
  const Outcome outcome = graphrun({path, "--log", log});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::ifstream stream(log);
  std::stringstream content;
  content << stream.rdbuf();
  const std::vector<std::string> rows = lines(content.str());
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows[0], "epoch,step,seconds,steps_per_second,loss,validation_loss,validation_rmse,lr");
  std::vector<std::string> epochs;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string epoch = rows[i].substr(0, rows[i].find(','));
    epochs.push_back(epoch);
    EXPECT_EQ(std::count(rows[i].begin(), rows[i].end(), ','), 7) << rows[i];
    EXPECT_EQ(has(rows[i], ",,"), std::stoi(epoch) % 6 != 0) << rows[i];  // not evaluated
  }
  EXPECT_EQ(epochs, (std::vector<std::string>{"4", "6", "8", "12", "16", "18", "20"}));
  EXPECT_EQ(lines(outcome.err).size(), 5u) << outcome.err;  // one per log_every
  EXPECT_TRUE(has(lines(outcome.err).back(), "validation@18 loss")) << "the latest one, of epoch 18";
  expect_rejected(graphrun({path, "--log", (folder_ / "none" / "log.csv").string()}), {"cannot write"});
}

TEST_F(Checks, AKilledRunLeavesWholeLines) {
  const std::string log = (folder_ / "log.csv").string();
  bool sent = false;
  ProcessOptions options;
  options.on_stderr = [&](pid_t process, std::string_view err) {
    if (sent || !has(err, "epoch 9000/")) return;
    sent = true;
    kill(process, SIGKILL);
  };
  const Outcome outcome =
      graphrun({model_, "--epochs=2000000000", "--set", "train.log_every=1000", "--log", log}, options);
  EXPECT_EQ(outcome.signal, SIGKILL);
  std::ifstream stream(log);
  std::stringstream content;
  content << stream.rdbuf();
  ASSERT_FALSE(content.str().empty());
  EXPECT_EQ(content.str().back(), '\n');
  const std::vector<std::string> rows = lines(content.str());
  EXPECT_GE(rows.size(), 10u);
  for (const std::string& row : rows) EXPECT_EQ(std::count(row.begin(), row.end(), ','), 5) << row;
}

}  // namespace
}  // namespace graphrun::testing
