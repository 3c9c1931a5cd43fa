// Files that the command line writes, and streams that fail: nothing that was there is lost, nothing half-written
// stays.
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"

namespace graphrun::testing {
namespace {

namespace fs = std::filesystem;

class Outputs : public Cli {
 protected:
  static std::string read(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    std::stringstream content;
    content << stream.rdbuf();
    return content.str();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) found.insert(entry.path().filename().string());
    return found;
  }
  // In a shell that sets limits or redirects first.
  static Outcome shell(const std::string& before, const std::string& after, const ProcessOptions& options = {}) {
    return run({"/bin/sh", "-c", before + " exec " GRAPHRUN_CLI " " + after}, options);
  }
  std::vector<std::string> with_every_output(std::vector<std::string> words) const {
    for (const auto& [flag, name] : kOutputs) words.insert(words.end(), {flag, path(name)});
    return words;
  }
  static constexpr std::pair<const char*, const char*> kOutputs[] = {{"--losses", "losses.txt"},
                                                                     {"--log", "log.csv"},
                                                                     {"--save-weights", "weights.npz"},
                                                                     {"--profile-trace", "trace.json"}};
  const std::string data_ = file("data.csv", "x,y\n0,1\n1,3\n2,5\n3,7\n");
  std::string with_data() const {
    Json model = Json::parse(kLine);
    model["data"] = Json::parse(R"({"train": {"csv": "data.csv", "x": ["x"], "y": ["y"]}})");
    return file("csv.json", model.dump());
  }
};

TEST_F(Outputs, AMistakeLeavesOldResults) {
  for (const auto& [flag, name] : kOutputs) file(name, "old");
  const std::string broken = file("broken.json", "{\"format\": 1,\n  oops}\n");
  for (const std::string& model : {broken, path("none.json"), std::string("--epoch=3")})
    EXPECT_EQ(graphrun(with_every_output({model})).code, 2);
  expect_rejected(graphrun({"verify", broken, "--dump=x", "--dump-to", path("losses.txt")}), {"broken.json"});
  EXPECT_EQ(graphrun({"verify", model_, "--dump=nothing", "--dump-to", path("losses.txt")}).code, 2);
  for (const auto& [flag, name] : kOutputs) EXPECT_EQ(read(path(name)), "old") << name;
  ASSERT_EQ(graphrun(with_every_output({model_})).code, 0);
  for (const auto& [flag, name] : kOutputs) EXPECT_NE(read(path(name)), "old") << name;
  EXPECT_EQ(names(), (std::set<std::string>{"broken.json", "data.csv", "line.json", "log.csv", "losses.txt",
                                            "trace.json", "weights.npz"}));
}

TEST_F(Outputs, NeverTakeThePlaceOfAnInput) {
  const std::string model = with_data();
  ASSERT_EQ(graphrun({model, "-q", "--save-weights", path("w.npz")}).code, 0);
  fs::create_symlink("csv.json", path("link"));
  fs::create_hard_link(path("data.csv"), path("hard"));
  const std::set<std::string> before = names();
  for (const auto& [flag, unused] : kOutputs) {
    SCOPED_TRACE(flag);
    expect_rejected(graphrun({model, flag, model}), {flag, "is the model file"});
    expect_rejected(graphrun({model, flag, path("link")}), {flag, "is the model file"});
    expect_rejected(graphrun({model, flag, data_}), {flag, "is a file that the model reads"});
    expect_rejected(graphrun({model, flag, path("hard")}), {flag, "is a file that the model reads"});
    expect_rejected(graphrun({model, "--weights", path("w.npz"), flag, path("w.npz")}), {"the weights that --weights"});
    expect_rejected(graphrun({model, "--executor=" GRAPHRUN_MISBEHAVING_EXECUTOR, flag, GRAPHRUN_MISBEHAVING_EXECUTOR}),
                    {"executor"});
  }
  expect_rejected(graphrun({"verify", model, "--dump=x", "--dump-to", data_}), {"--dump-to", "that the model reads"});
  expect_rejected(graphrun({"verify", model, "--dump=x", "--dump-to", model}), {"--dump-to", "is the model file"});
  EXPECT_EQ(names(), before);
  EXPECT_EQ(read(data_), "x,y\n0,1\n1,3\n2,5\n3,7\n");
  EXPECT_EQ(graphrun({model, "-q", "--weights", path("w.npz")}).code, 0);  // nothing was hurt
}

TEST_F(Outputs, EachHasAFileOfItsOwn) {
  file("old", "old");
  fs::create_hard_link(path("old"), path("hard"));
  for (const auto& [a, b] : {std::pair{"new", "new"}, {"old", "old"}, {"old", "hard"}, {"new", "./new"}}) {
    expect_rejected(graphrun({model_, "--log", path(a), "--losses", path(b)}),
                    {"--log and --losses are the same file"});
  }
  EXPECT_EQ(read(path("old")), "old");
  EXPECT_EQ(graphrun({model_, "-q", "--log", "/dev/null", "--losses", "/dev/null"}).code, 0);
  const Outcome same = shell("", model_ + " -q --losses " + path("out") + " > " + path("out"));
  expect_rejected(same, {"--losses", "is where stdout goes"});
}

TEST_F(Outputs, StdoutAndPipesAreWrittenDirectly) {
  const Outcome piped = graphrun({model_, "-q", "--json", "--losses", "/dev/stdout"});
  EXPECT_EQ(piped.code, 0) << piped.err;
  EXPECT_EQ(lines(piped.out).size(), 21u) << piped.out;
  EXPECT_TRUE(Json::accept(lines(piped.out).back()));
  const Outcome redirected = shell("", model_ + " -q --json --losses /dev/stdout --log /dev/stderr > " + path("out"));
  EXPECT_EQ(redirected.code, 0) << redirected.err;
  EXPECT_EQ(lines(read(path("out"))).size(), 21u);
  EXPECT_TRUE(redirected.err.starts_with("epoch,step,")) << redirected.err;

  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const Outcome fifo = run({"/bin/sh", "-c",
                            "cat " + path("fifo") + " & " GRAPHRUN_CLI " " + model_ + " -q --json --save-weights " +
                                path("fifo") + " > /dev/null; code=$?; wait; exit $code"});
  EXPECT_EQ(fifo.code, 0) << fifo.err;
  EXPECT_TRUE(fifo.out.starts_with("PK")) << "an NPZ file";
  EXPECT_TRUE(fs::is_fifo(path("fifo")));
}

TEST_F(Outputs, ADivergingRunKeepsItsLossesAndItsLog) {
  file("log.csv", "old");
  const Outcome outcome = graphrun({model_, "--set", "train.optimizer.sgd.lr=1e10", "--log", path("log.csv"),
                                    "--losses", path("losses.txt"), "--set", "train.log_every=1"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const std::vector<std::string> losses = lines(read(path("losses.txt"))), log = lines(read(path("log.csv")));
  ASSERT_GE(losses.size(), 2u);
  EXPECT_TRUE(losses.back() == "inf" || losses.back() == "nan") << losses.back();
  EXPECT_TRUE(has(outcome.err, "at step " + std::to_string(losses.size()) + " ")) << outcome.err;
  EXPECT_EQ(log.size(), losses.size());  // its head, and a line for each epoch that was whole
}

TEST_F(Outputs, AFullDiskLeavesWhatWasThereAndFailsTheRun) {
  for (const auto& [flag, name] : kOutputs) file(name, "old");
  const std::string words = model_ + " -q --json --epochs=2000 --set train.log_every=1 --losses " + path("losses.txt") +
                            " --log " + path("log.csv");
  const Outcome old = shell("ulimit -f 8;", words);
  EXPECT_EQ(old.code, 1) << old.err;
  for (const char* name : {"losses.txt", "log.csv"}) {
    EXPECT_TRUE(has(old.err, name)) << old.err;
    EXPECT_EQ(read(path(name)), "old");
    fs::remove(path(name));
  }
  EXPECT_EQ(Json::parse(old.out)["steps"], 2000);  // no reason to train again
  const Outcome fresh = shell("ulimit -f 8;", words);
  EXPECT_EQ(fresh.code, 1) << fresh.err;
  EXPECT_FALSE(fs::exists(path("losses.txt")));
  const std::string log = read(path("log.csv"));  // grew in view, by whole lines
  EXPECT_EQ(log.back(), '\n');
  const std::vector<std::string> rows = lines(log);
  EXPECT_GT(rows.size(), 50u);
  EXPECT_EQ(std::count(rows.back().begin(), rows.back().end(), ','), 5) << rows.back();
  EXPECT_EQ(names().size(), 5u);
}

TEST_F(Outputs, WeightsThatCannotBeSavedAreRescued) {
  fs::create_directory(path("rescue"));
  fs::create_directory(path("gone"));
  bool removed = false;
  ProcessOptions options{.environment = {"TMPDIR=" + path("rescue")}};
  options.on_stderr = [&](pid_t process, std::string_view err) {
    if (removed || !has(err, "epoch ")) return;
    removed = true;
    fs::remove_all(path("gone"));
    kill(process, SIGINT);
  };
  const Outcome outcome = graphrun(
      {model_, "--json", "--epochs=2000000000", "--set", "train.log_every=1000", "--save-weights", path("gone/w.npz")},
      options);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const std::string hash = Json::parse(outcome.out)["weights_hash"];  // the results are there all the same
  ASSERT_EQ(std::distance(fs::directory_iterator(path("rescue")), fs::directory_iterator()), 1) << outcome.err;
  const std::string rescued = fs::directory_iterator(path("rescue"))->path().string();
  EXPECT_TRUE(has(outcome.err, "the weights are in '" + rescued + "' instead")) << outcome.err;
  EXPECT_EQ(Json::parse(graphrun({"eval", model_, "--weights", rescued, "--json"}).out)["weights_hash"], hash);
}

TEST_F(Outputs, WithoutAHomeWeightsAreRescuedToTheUsersFolder) {
  const passwd* user = ::getpwuid(::geteuid());
  if (user == nullptr || ::access(user->pw_dir, W_OK) != 0) GTEST_SKIP() << "the user has no home folder to write to";
  const Outcome outcome =
      graphrun({model_, "-q", "--save-weights", "/dev/full"}, {.environment = {"TMPDIR=/nowhere", "HOME="}});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const std::string stem = std::string(user->pw_dir) + "/graphrun-weights-";
  const std::size_t at = outcome.err.find("the weights are in '" + stem);
  ASSERT_NE(at, std::string::npos) << outcome.err;
  const std::size_t begin = at + std::string_view("the weights are in '").size();
  const std::string rescued = outcome.err.substr(begin, outcome.err.find('\'', begin) - begin);
  EXPECT_TRUE(read(rescued).starts_with("PK"));
  fs::remove(rescued);
}

TEST_F(Outputs, EverySignalThatEndsTheTrainingKeepsItsResults) {
  for (const auto& [number, times] : {std::pair{SIGINT, 1}, {SIGTERM, 1}, {SIGHUP, 1}, {SIGHUP, 3}, {SIGXCPU, 3}}) {
    SCOPED_TRACE(std::to_string(number) + ", " + std::to_string(times) + " times");
    for (const auto& [flag, name] : kOutputs) fs::remove(path(name));
    bool sent = false;
    ProcessOptions options;
    options.on_stderr = [&, number = number, times = times](pid_t process, std::string_view err) {
      if (std::exchange(sent, sent || has(err, "epoch "))) return;
      for (int i = 0; sent && i < times; ++i) kill(process, number);
    };
    const Outcome outcome = graphrun(
        with_every_output({model_, "--json", "--epochs=2000000000", "--set", "train.log_every=1000"}), options);
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    EXPECT_EQ(Json::parse(outcome.out)["interrupted"], true);
    for (const auto& [flag, name] : kOutputs) EXPECT_GT(fs::file_size(path(name)), 0u) << name;
  }
}

// An interrupt leaves 0.2 s for the results. The evaluation of a million rows takes longer on any machine.
TEST_F(Outputs, AnInterruptLeavesOutResultsThatTakeLong) {
  const std::string large = file("large.json", R"model({
    "format": 1,
    "data": {"train": {"random": {"rows": 8, "columns": {"a": {"normal": 1}}}, "x": "a", "y": "a"},
             "validation": {"random": {"rows": 1000000, "columns": {"a": {"normal": 1}}}, "x": "a", "y": "a"}},
    "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
    "graph": [{"name": "g", "op": "dense", "inputs": ["x"], "units": 700, "activation": "tanh"},
              {"name": "h", "op": "dense", "inputs": ["g"], "units": 700, "activation": "tanh"},
              {"name": "p", "op": "dense", "inputs": ["h"], "units": 1}, "loss = mean((p - y) ^ 2)"],
    "outputs": {"p": "y"},
    "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 1e-6}}, "batch": 8, "epochs": 2000000000}
  })model");
  bool sent = false;
  ProcessOptions options;
  options.on_stderr = [&](pid_t process, std::string_view err) {
    if (sent || !has(err, "epoch ")) return;
    sent = true;
    kill(process, SIGINT);
  };
  const Outcome outcome = graphrun({large, "--json"}, options);
  ASSERT_TRUE(sent);
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result["interrupted"], true);
  EXPECT_TRUE(result["validation"].is_null());
  EXPECT_TRUE(result.contains("weights_hash"));
}

TEST_F(Outputs, ASignalThatTheCallerIgnoresStaysIgnored) {
  for (const auto& [number, name] : {std::pair{SIGHUP, "HUP"}, {SIGINT, "INT"}}) {
    std::string ignored;
    ProcessOptions options;
    options.on_stderr = [&](pid_t process, std::string_view err) {
      if (!ignored.empty() || !has(err, "epoch ")) return;
      const std::string status = read("/proc/" + std::to_string(process) + "/status");
      ignored = status.substr(status.find("SigIgn:\t") + 8, 16);
      kill(process, SIGTERM);
    };
    shell(std::string("trap '' ") + name + ";", model_ + " --epochs=2000000000 --set train.log_every=1000", options);
    EXPECT_EQ(std::stoull(ignored, nullptr, 16) >> (number - 1) & 1, 1u) << name << " of " << ignored;
  }
}

TEST_F(Outputs, APipeWithoutAReaderIsWaitedForBeforeTheTraining) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer keeps a signal back until open() returns, which it never does";
#endif
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  for (const char* flag : {"--log", "--losses", "--save-weights", "--profile-trace"}) {
    bool sent = false;
    ProcessOptions options;
    options.on_stderr = [&](pid_t process, std::string_view err) {
      if (std::exchange(sent, sent || has(err, "waiting for a reader of '"))) return;
      if (sent) kill(process, SIGTERM);
    };
    const Outcome outcome = graphrun({model_, flag, path("fifo")}, options);
    EXPECT_EQ(outcome.code, 130) << outcome.err;
    EXPECT_FALSE(has(outcome.err, "epoch ")) << outcome.err;
  }
}

TEST_F(Outputs, AFolderThatWasRemovedIsRejectedAtOnce) {
  const std::string gone = "mkdir " + path("gone") + "; cd " + path("gone") + "; rmdir " + path("gone") + ";";
  for (const auto& [flag, name] : kOutputs)
    expect_rejected(shell(gone, model_ + " " + flag + " " + name), {"cannot write", "No such file"});
}

TEST_F(Outputs, ALeftoverOfAnotherRunIsNoObstacle) {
  for (const char* left : {"w.npz.1-0.tmp", "w.npz.tmp", "w.npz.0000000000000000.tmp"}) file(left, "left");
  // As in a container: process 1, again and again.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(graphrun({model_, "-q", "--save-weights", path("w.npz")}).code, 0);
  EXPECT_EQ(names().size(), 6u);
}

TEST_F(Outputs, AKilledRunLeavesNothingHalfWritten) {
  for (const auto& [flag, name] : kOutputs) file(name, "old");
  bool sent = false;
  ProcessOptions options;
  options.on_stderr = [&](pid_t process, std::string_view err) {
    if (sent || !has(err, "epoch 9000/")) return;
    sent = true;
    kill(process, SIGKILL);
  };
  const Outcome outcome =
      graphrun(with_every_output({model_, "--epochs=2000000000", "--set", "train.log_every=1000"}), options);
  EXPECT_EQ(outcome.signal, SIGKILL);
  for (const auto& [flag, name] : kOutputs) EXPECT_EQ(read(path(name)), "old") << name;
  // Its log is where it said.
  const std::size_t at = outcome.err.find("is written to '") + 15;
  const std::string log = outcome.err.substr(at, outcome.err.find('\'', at) - at);
  EXPECT_GE(lines(read(log)).size(), 10u) << outcome.err;
  EXPECT_EQ(read(log).back(), '\n');
}

class Streams : public Outputs {};

TEST_F(Streams, ClosedOnesHurtNobody) {
  const std::string words = model_ + " --set train.log_every=1 --log " + path("log.csv") + " --save-weights " +
                            path("w.npz") + " --losses " + path("losses.txt");
  for (const char* closed : {"<&-", "2>&-", ">&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
    SCOPED_TRACE(closed);
    const bool told =
        std::string_view(closed).find(">&-") == std::string_view::npos || std::string_view(closed) == "2>&-";
    const Outcome outcome = shell("", words + " " + closed);
    EXPECT_EQ(outcome.signal, 0);
    EXPECT_EQ(outcome.code, told ? 0 : 1) << outcome.err;  // results that nobody gets
    EXPECT_EQ(lines(read(path("log.csv"))).size(), 21u);
    EXPECT_EQ(lines(read(path("losses.txt"))).size(), 20u);
    EXPECT_FALSE(has(read(path("log.csv")) + read(path("losses.txt")), "weights"));
    EXPECT_TRUE(read(path("w.npz")).starts_with("PK"));
  }
}

TEST_F(Streams, FullOrBrokenOnesHurtNobody) {
  const std::string full = "2> /dev/full";
  EXPECT_EQ(shell("", model_ + " " + full).code, 0);
  EXPECT_EQ(shell("", model_ + " --quiet > /dev/full " + full).code, 1);
  EXPECT_EQ(shell("", path("none.json") + " " + full).code, 2);
  EXPECT_EQ(shell("", path("none.json") + " --diagnostics=json " + full).code, 2);
  EXPECT_EQ(shell("", "--bad " + full).code, 2);
  // A reader that went away.
  const auto into_nobody = [&](const std::string& words) {
    return run({"/bin/sh", "-c",
                "{ " GRAPHRUN_CLI " " + words + "; echo $? > " + path("code") + "; } 2>&1 >/dev/null | true"});
  };
  EXPECT_EQ(into_nobody(model_ + " --epochs=20000 --set train.log_every=1").code, 0);
  EXPECT_EQ(read(path("code")), "0\n");
}

TEST_F(Streams, AFileThatMayNotGrowIsAFailedWrite) {
  const Outcome outcome = shell("ulimit -f 0;", model_ + " -q --save-weights " + path("w.npz"),
                                {.environment = {"TMPDIR=/nowhere", "HOME=/nowhere"}});
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "File too large") && has(outcome.err, "the weights are lost")) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "weights")) << "the results are printed all the same";
  EXPECT_EQ(names(), (std::set<std::string>{"data.csv", "line.json"}));
}

}  // namespace
}  // namespace graphrun::testing
