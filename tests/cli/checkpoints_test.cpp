// checkpoints_test.cpp: --checkpoint-dir and --resume: what a user types, sees and finds in the folder.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <span>
#include <thread>

#include "base/checksum.h"
#include "fixture.h"

namespace graphrun::testing {
namespace {

// A training that would take minutes.
constexpr const char* kLong = "--epochs=100000000";

class CheckpointFlags : public Cli {
 protected:
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  std::vector<std::string> files(const std::string& name) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / name))
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }

  // Without one that was being written when the training was killed.
  std::vector<std::string> checkpoints(const std::string& name) const {
    std::vector<std::string> found = files(name);
    std::erase_if(found, [](const std::string& file) { return !file.ends_with(".safetensors"); });
    return found;
  }

  std::string content(const std::string& name) const { return test::content_of(folder_ / name); }

  // Lines of a CSV log without the timing columns.
  std::vector<std::string> log_without_times(const std::string& name) const {
    std::vector<std::string> kept;
    for (const std::string& line : lines(content(name))) {
      std::vector<std::string> cells;
      std::istringstream stream(line);
      for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
      kept.push_back(cells[0] + "," + cells[1] + "," + cells[4]);
    }
    return kept;
  }
};

TEST_F(CheckpointFlags, KeepOneEachEpochAndTheNewestThree) {
  const Outcome outcome = graphrun({"train", model_, "--epochs=6", "--checkpoint-dir", at("ck")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(files("ck"),
            (std::vector<std::string>{"checkpoint-000000000004.safetensors", "checkpoint-000000000005.safetensors",
                                      "checkpoint-000000000006.safetensors"}));
}

TEST_F(CheckpointFlags, ResumeIsTheTrainingThatWasNeverInterrupted) {
  for (const char* every : {"2", "3steps", "100s"}) {
    SCOPED_TRACE(every);
    std::filesystem::remove_all(at("ck"));
    std::filesystem::remove_all(at("whole"));
    ASSERT_EQ(graphrun({"train", model_, "--epochs=6", "--checkpoint-dir", at("whole"), "--checkpoint-every", every,
                        "--log", at("whole.csv"), "--losses", at("whole.txt"), "--save-weights", at("whole.npz")})
                  .code,
              0);
    ASSERT_EQ(
        graphrun({"train", model_, "--epochs=3", "--checkpoint-dir", at("ck"), "--checkpoint-every", every, "--log",
                  at("log.csv"), "--losses", at("losses.txt"), "--save-weights", at("w.npz"), "--resume"})
            .code,
        0);
    const Outcome second =
        graphrun({"train", model_, "--epochs=6", "--checkpoint-dir", at("ck"), "--checkpoint-every", every, "--log",
                  at("log.csv"), "--losses", at("losses.txt"), "--save-weights", at("w.npz"), "--resume", "--json"});
    EXPECT_EQ(second.code, 0) << second.err;
    EXPECT_TRUE(has(second.err, "resuming from")) << second.err;
    EXPECT_TRUE(has(second.err, "step 3, epoch 3 of 6")) << second.err;
    EXPECT_EQ(Json::parse(second.out)["first_step"], 3);
    EXPECT_EQ(Json::parse(second.out)["steps"], 6);
    EXPECT_EQ(content("w.npz"), content("whole.npz"));
    EXPECT_EQ(content("losses.txt"), content("whole.txt"));
    EXPECT_EQ(log_without_times("log.csv"), log_without_times("whole.csv"));
    EXPECT_EQ(content("ck/checkpoint-000000000006.safetensors"), content("whole/checkpoint-000000000006.safetensors"));
    const Outcome third =
        graphrun({"train", model_, "--epochs=6", "--checkpoint-dir", at("ck"), "--resume=auto", "--json"});
    EXPECT_EQ(third.code, 0) << third.err;
    EXPECT_EQ(Json::parse(third.out)["weights_hash"], Json::parse(second.out)["weights_hash"]);
    EXPECT_EQ(Json::parse(third.out)["train"], Json::parse(second.out)["train"]);
  }
}

TEST_F(CheckpointFlags, ABareResumeTakesNoWord) {
  const Outcome outcome = graphrun({"--checkpoint-dir", at("ck"), "--resume", model_});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "has no checkpoint: training starts from the beginning")) << outcome.err;
}

TEST_F(CheckpointFlags, AFolderWithCheckpointsIsNotBegunAnew) {
  ASSERT_EQ(graphrun({"train", model_, "--checkpoint-dir", at("ck")}).code, 0);
  const std::vector<std::string> before = files("ck");
  expect_rejected(graphrun({"train", model_, "--checkpoint-dir", at("ck")}),
                  {"already has checkpoints of a training run", "--resume"});
  EXPECT_EQ(files("ck"), before);
}

TEST_F(CheckpointFlags, AnotherTrainingIsRejectedWithAllDifferences) {
  ASSERT_EQ(graphrun({"train", model_, "--checkpoint-dir", at("ck")}).code, 0);
  file("log.csv", "old");
  expect_rejected(graphrun({"train", model_, "--checkpoint-dir", at("ck"), "--resume", "--seed=9", "--log",
                            at("log.csv"), "--set", "train.optimizer.sgd.lr=0.1", "--set", "graph.p.activation=tanh"}),
                  {"seed: 1 in the checkpoint, 9 here", "lr=0.05", "lr=0.1", "graph: p"});
  EXPECT_EQ(content("log.csv"), "old");
}

TEST_F(CheckpointFlags, ACheckpointStandsForWeightsAndModel) {
  const Outcome trained = graphrun({"train", model_, "--checkpoint-dir", at("ck"), "--json"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome evaluated = graphrun({"eval", at("ck/checkpoint-000000000020.safetensors"), "--json"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(Json::parse(evaluated.out)["weights_hash"], Json::parse(trained.out)["weights_hash"]);
  EXPECT_EQ(Json::parse(evaluated.out)["test"], Json::parse(trained.out)["test"]);
}

TEST_F(CheckpointFlags, RunFoldersKeepThemAndGoOn) {
  const std::vector<std::string> first = {"train",    model_,       "--epochs=3", "--run-dir",
                                          at("runs"), "--run-name", "a",          "--checkpoint-every=1"};
  ASSERT_EQ(graphrun(first).code, 0);
  EXPECT_EQ(files("runs/a/checkpoints").size(), 3u);
  const Outcome second =
      graphrun({"train", model_, "--epochs=6", "--run-dir", at("runs"), "--run-name", "a", "--resume", "--json"});
  EXPECT_EQ(second.code, 0) << second.err;
  const Outcome whole = graphrun({"train", model_, "--epochs=6", "--run-dir", at("runs"), "--run-name", "b", "--json"});
  EXPECT_EQ(Json::parse(second.out)["weights_hash"], Json::parse(whole.out)["weights_hash"]);
  EXPECT_EQ(log_without_times("runs/a/log.csv"), log_without_times("runs/b/log.csv"));
  EXPECT_EQ(content("runs/a/weights.npz"), content("runs/b/weights.npz"));
  EXPECT_EQ(Json::parse(content("runs/a/result.json"))["epochs"], 6);
  expect_rejected(graphrun(first), {"already exists", "--resume"});
}

// As after a crash: what the killed training had, though it found an older log and older losses.
TEST_F(CheckpointFlags, AKilledTrainingGoesOnWithItsOwnLogs) {
  const auto train = [&](std::vector<std::string> more, const ProcessOptions& options = {}) {
    std::vector<std::string> words = {
        "train",       model_,  "--checkpoint-every=1", "--epochs=40", "--set",         "train.log_every=1", "--log",
        at("log.csv"), "--log", at("log.jsonl"),        "--losses",    at("losses.txt")};
    words.insert(words.end(), more.begin(), more.end());
    return graphrun(words, options);
  };
  ASSERT_EQ(train({"--checkpoint-dir", at("other"), "--set", "train.seed=77"}).code, 0);
  const std::vector<std::string> other = log_without_times("log.csv");
  bool sent = false;
  ProcessOptions options;
  options.on_stderr = [&](pid_t process, std::string_view) {
    if (sent || !std::filesystem::exists(at("ck"))) return;
    while (checkpoints("ck").empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ::kill(process, SIGKILL);
    sent = true;
  };
  EXPECT_EQ(train({"--checkpoint-dir", at("ck"), kLong}, options).signal, SIGKILL);
  const std::string last = checkpoints("ck").back();
  const std::string epochs = std::to_string(std::stoull(last.substr(last.find('-') + 1)) + 5);  // one step each
  const Outcome on = train({"--checkpoint-dir", at("ck"), "--resume", "--epochs", epochs});
  EXPECT_EQ(on.code, 0) << on.err;
  EXPECT_TRUE(has(on.err, "resuming from")) << on.err;
  EXPECT_FALSE(has(on.err, "has no losses")) << on.err;
  const std::vector<std::string> log = log_without_times("log.csv");
  const std::string losses = content("losses.txt");
  EXPECT_NE(log[1], other[1]) << "another training, whose lines would be told from these";
  EXPECT_TRUE(content("log.jsonl").starts_with(R"({"epoch":1,)")) << content("log.jsonl");
  ASSERT_EQ(train({"--checkpoint-dir", at("whole"), "--epochs", epochs}).code, 0);
  EXPECT_EQ(losses, content("losses.txt"));
  EXPECT_EQ(log, log_without_times("log.csv"));
}

TEST_F(CheckpointFlags, OfAnotherFormatIsNotBegunAnew) {
  ASSERT_EQ(graphrun({"train", model_, "--epochs=2", "--checkpoint-dir", at("ck")}).code, 0);
  const std::string name = "ck/" + files("ck").back();
  std::string bytes = content(name);
  const std::size_t format = bytes.find(R"("checkpoint": "1")");
  ASSERT_NE(format, std::string::npos);
  bytes[format + 15] = '2';
  const std::string_view summed(bytes.data(), bytes.size() - 8);
  const std::uint64_t sum = checksum(std::as_bytes(std::span(summed)));
  std::memcpy(bytes.data() + summed.size(), &sum, sizeof sum);
  file(name, bytes);
  expect_rejected(graphrun({"train", model_, "--epochs=4", "--checkpoint-dir", at("ck"), "--resume"}),
                  {"is a checkpoint of format 2, expected 1", "the version of graphrun that wrote it"});
  EXPECT_EQ(files("ck").size(), 2u);
}

TEST_F(CheckpointFlags, ThatCannotBeAreUsageErrors) {
  expect_rejected(graphrun({"train", model_, "--resume"}), {"--resume=auto needs the folder"});
  expect_rejected(graphrun({"train", model_, "--checkpoint-every=2"}), {"goes with --checkpoint-dir"});
  for (const char* bad : {"0", "-1", "2epochs", "steps", "s", "1.5", "nans"})
    expect_rejected(graphrun({"train", model_, "--checkpoint-dir", at("ck"), std::string("--checkpoint-every=") + bad}),
                    {"--checkpoint-every must be"});
  expect_rejected(graphrun({"train", model_, "--checkpoint-dir", at("ck"), "--checkpoint-every=9step"}),
                  {"a number of epochs, or as in 500steps or 30s, got '9step'"});
  expect_rejected(graphrun({"train", model_, "--checkpoint-dir", at("ck"), "--checkpoint-keep=0"}),
                  {"--checkpoint-keep"});
  expect_rejected(graphrun({"train", model_, "--checkpoint-dir", model_}), {"cannot hold checkpoints"});
  expect_rejected(graphrun({"train", model_, "--checkpoint-dir", "/dev/full"}),
                  {"'/dev/full' cannot hold checkpoints"});
  expect_rejected(graphrun({"train", model_, "--resume", "--run-dir", at("runs")}), {"--resume=auto needs"});
  expect_rejected(graphrun({"train", model_, "--resume=" + at("missing.safetensors")}), {"missing.safetensors"});
  expect_rejected(graphrun({"train", model_, "--resume=" + model_}), {"no safetensors file"});
  file("one.safetensors", "old");
  expect_rejected(
      graphrun({"train", model_, "--resume=" + at("one.safetensors"), "--save-weights", at("one.safetensors")}),
      {"is the checkpoint that --resume reads"});
  expect_rejected(graphrun({"eval", model_, "--resume"}), {"--resume goes with train"});
  EXPECT_FALSE(std::filesystem::exists(at("ck"))) << "a folder was made for nothing";
}

TEST_F(CheckpointFlags, AllocateNothing) {
  const Outcome outcome = graphrun({"train", model_, "--epochs=40", "--checkpoint-dir", at("ck"),
                                    "--checkpoint-every=1", "--assert-no-alloc", "--log", at("log.csv")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(CheckpointFlags, SigtermLeavesACheckpointAndSighupOneMore) {
  std::size_t seen = 0;
  bool told = false;
  ProcessOptions options;
  options.on_stderr = [&](pid_t process, std::string_view err) {
    if (told || !has(err, "has no checkpoint")) return;
    told = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until it trains
    ::kill(process, SIGHUP);
    while (files("ck").empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // training continues
    seen = files("ck").size();
    ::kill(process, SIGTERM);
  };
  const Outcome outcome =
      graphrun({"train", model_, kLong, "--checkpoint-dir", at("ck"), "--checkpoint-every=1000s", "--resume", "--json"},
               options);
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_EQ(seen, 1u) << "SIGHUP leaves one, and it goes on";
  const std::vector<std::string> left = files("ck");
  ASSERT_EQ(left.size(), 2u);
  const Json result = Json::parse(outcome.out);
  EXPECT_TRUE(result["interrupted"]);
  EXPECT_EQ(std::stoull(left.back().substr(11)), result["steps"]);
}

}  // namespace
}  // namespace graphrun::testing
