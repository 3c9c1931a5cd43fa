// The command line's contract: streams, exit codes, the JSON schemas and the answers to mistakes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "fixture.h"

namespace graphrun::testing {
namespace {

TEST_F(Cli, HelpNamesEveryFlagVariableAndExitCode) {
  const Outcome help = graphrun({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  for (const char* part :
       {"train",         "plan",        "verify",      "--against",     "--steps",   "--trajectory",
        "--tolerance",   "--dump",      "--dump-to",   "--executor",    "--target",  "--set",
        "--epochs",      "--batch",     "--seed",      "--data-dir",    "--json",    "--quiet",
        "--verbose",     "-v",          "--no-passes", "--no-fuse",     "--program", "--losses",
        "--diagnostics", "--version",   "--help",      "GRAPHRUN_DATA", "NO_COLOR",  "CUDA_VISIBLE_DEVICES",
        "Examples:",     "Exit codes:", "130"}) {
    EXPECT_TRUE(has(help.out, part)) << part;
  }
  for (const std::string& line : lines(help.out)) EXPECT_LE(line.size(), 110u) << line;
  EXPECT_EQ(graphrun({"help"}).out, help.out);
  EXPECT_EQ(graphrun({model_, "-h"}).out, help.out);
}

TEST_F(Cli, EveryVerbHasHelpOfItsOwn) {
  std::vector<std::string> verbs;
  for (const std::string& line : lines(graphrun({"--help"}).out)) {
    if (!verbs.empty() && line.empty()) break;
    if (line == "Verbs:" || !verbs.empty()) verbs.push_back(line.substr(0, line.find(' ', 2)));
  }
  ASSERT_GE(verbs.size(), 12u);
  verbs.erase(verbs.begin());  // "Verbs:"
  for (std::string& verb : verbs) {
    verb.erase(0, 2);
    SCOPED_TRACE(verb);
    const Outcome help = graphrun({verb, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_EQ(help.err, "");
    for (const char* part : {"Usage: graphrun ", "Examples:", "Exit codes:", "--diagnostics", "NO_COLOR"})
      EXPECT_TRUE(has(help.out, part)) << part;
    EXPECT_EQ(help.out.rfind("graphrun " + verb, 0), 0u);
    EXPECT_EQ(graphrun({"help", verb}).out, help.out);
    for (const std::string& line : lines(help.out)) EXPECT_LE(line.size(), 118u) << line;
  }
  EXPECT_FALSE(has(graphrun({"plan", "--help"}).out, "--losses"));  // a flag of train
  EXPECT_TRUE(has(graphrun({"train", "--help"}).out, "--losses"));
  expect_refused(graphrun({"help", "pln"}), {"did you mean plan?"});
  expect_refused(graphrun({"help", "plan", "more"}), {"'more'"});
}

TEST_F(Cli, VariablesMirrorFlagsAndFlagsWin) {
  const auto executor = [&](std::vector<std::string> words, const char* value) {
    words.insert(words.end(), {model_, "--json", "--quiet"});
    const Outcome outcome = graphrun(words, {.environment = {std::string("GRAPHRUN_EXECUTOR=") + value}});
    return outcome.code == 0 ? Json::parse(outcome.out)["executor"].get<std::string>() : outcome.err;
  };
  EXPECT_EQ(executor({}, "ref"), "ref");
  EXPECT_EQ(executor({"--executor=cpu"}, "ref"), "cpu");
  EXPECT_EQ(executor({}, ""), "cpu");
  expect_refused(graphrun({model_}, {.environment = {"GRAPHRUN_THREADS=many"}}), {"GRAPHRUN_THREADS", "'many'"});
  expect_refused(graphrun({model_}, {.environment = {"GRAPHRUN_ISA=sse"}}), {"GRAPHRUN_ISA", "'sse'"});
  expect_refused(graphrun({model_, "--isa=sse"}), {"'sse'"});
  EXPECT_EQ(graphrun({model_, "--isa=plain"}, {.environment = {"GRAPHRUN_ISA=sse"}}).code, 0);
  const std::string help = graphrun({"--help"}).out;
  for (const char* variable : {"GRAPHRUN_EXECUTOR", "GRAPHRUN_THREADS", "GRAPHRUN_ISA", "GRAPHRUN_DATA"})
    EXPECT_TRUE(has(help, variable)) << variable;
}

TEST_F(Cli, VersionNamesTheBuildAndTheExecutors) {
  const Outcome version = graphrun({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.rfind("graphrun ", 0), 0u);
  for (const char* part : {"build: C++20, compiler ", "CUDA: ", "instruction set here: ", "executors:"})
    EXPECT_TRUE(has(version.out, part)) << part;
  EXPECT_TRUE(has(version.out, "cpu"));
  EXPECT_TRUE(has(version.out, "h200"));
}

TEST_F(Cli, MistakesOfUsageExitWithTwo) {
  expect_refused(graphrun({}), {"no model file", "--help"});
  expect_refused(graphrun({"train"}), {"train needs a model file"});
  expect_refused(graphrun({"--epoch=3", model_}), {"--epoch", "did you mean --epochs?"});
  expect_refused(graphrun({model_, "-x"}), {"no flag -x"});
  expect_refused(graphrun({model_, "--executor"}), {"--executor"});
  expect_refused(graphrun({"--executor=", model_}), {"--executor= has no value"});
  expect_refused(graphrun({model_, "--diagnostics=xml"}), {"--diagnostics", "text or json"});
  expect_refused(graphrun({model_, "--quiet", "-v"}), {"--quiet"});
  expect_refused(graphrun({model_, model_}), {"one model file at a time"});
  expect_refused(graphrun({model_, "--set", "epochs"}), {"PATH=VALUE", "'epochs'"});
  expect_refused(graphrun({model_, "--set", "=1"}), {"PATH=VALUE"});
  expect_refused(graphrun({model_, "--program"}), {"--program goes with plan"});
  expect_refused(graphrun({"plan", model_, "--losses=x"}), {"--losses goes with train"});
  expect_refused(graphrun({"plan", model_, "--program", "--json"}), {"--program", "--json"});
  expect_refused(graphrun({model_, "--losses", (folder_ / "none" / "x").string()}), {"cannot write"});
}

TEST_F(Cli, ABareWordNearAVerbIsAMisspeltVerb) {
  expect_refused(graphrun({"trian", model_}), {"no verb and no file is called 'trian'", "did you mean train?"});
  expect_refused(graphrun({"pln"}), {"'pln'", "did you mean plan?"});
  expect_refused(graphrun({"optimise", model_}), {"'optimise'", "the verbs are train, eval"});
  expect_refused(graphrun({"missing.json"}), {"no such file: 'missing.json'"});
  expect_refused(graphrun({(folder_ / "lime.json").string()}), {"lime.json'", "did you mean", "line.json?"});
  expect_refused(graphrun({file("data.csv", "x,y\n")}), {"data.csv' is a file of data, not a model file"});
  expect_refused(graphrun({"predict", file("data.csv", "x,y\n"), model_}), {"is a file of data", "MODEL.json DATA"});
  expect_refused(graphrun({model_, "--executor=gpu"}), {"did you mean 'cuda'?"});
  expect_refused(graphrun({"train", "pln"}), {"no such file: 'pln'"});
  expect_refused(graphrun({"./trian"}), {"no such file: './trian'"});
  expect_refused(graphrun({folder_.string()}), {"is a folder"});
}

TEST_F(Cli, AWrongModelExitsWithTwoAndShowsThePlace) {
  const std::string broken = file("broken.json", "{\"format\": 1,\n  oops}\n");
  expect_refused(graphrun({broken}), {"broken.json:2:"});
  expect_refused(graphrun({"plan", broken}), {"broken.json:2:"});
  expect_refused(graphrun({model_, "--set", "train.epoch=3"}), {"epoch"});
  expect_refused(graphrun({model_, "--batch=99"}), {"99"});
}

TEST_F(Cli, AnUnknownExecutorIsAnsweredWithTheNearest) {
  expect_refused(graphrun({model_, "--executor=cpv"}), {"cpv", "cpu"});
  expect_refused(graphrun({"plan", model_, "--target=h20"}), {"h20", "h200"});
}

TEST_F(Cli, DiagnosticsCanBeJson) {
  const std::string broken = file("broken.json", "{\"format\": 1,\n  oops}\n");
  const Outcome outcome = graphrun({broken, "--diagnostics=json"});
  EXPECT_EQ(outcome.code, 2);
  const Json array = Json::parse(outcome.err);
  ASSERT_TRUE(array.is_array());
  ASSERT_GE(array.size(), 1u);
  const std::vector<std::string> expected = {"severity", "code",   "message", "hint",       "file",
                                             "line",     "column", "pointer", "source_line"};
  EXPECT_EQ(keys(array[0]), expected);
  EXPECT_EQ(array[0]["severity"], "error");
  EXPECT_EQ(array[0]["line"], 2);

  const Outcome usage = graphrun({"--diagnostics", "json", "--epoch=3"});
  EXPECT_EQ(usage.code, 2);
  EXPECT_EQ(Json::parse(usage.err).at(0).at("code"), "usage.unknown_flag");

  const Outcome fine = graphrun({model_, "--diagnostics=json"});
  EXPECT_EQ(fine.code, 0) << fine.err;
  EXPECT_EQ(fine.err, "");
}

TEST_F(Cli, TrainPrintsOneJsonObjectWithTheseKeys) {
  for (const bool named : {false, true}) {
    std::vector<std::string> words = {model_, "--json"};
    if (named) words.insert(words.begin(), "train");
    const Outcome outcome = graphrun(words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
    const Json result = Json::parse(outcome.out);
    const std::vector<std::string> expected = {
        "model",   "executor",         "train",       "validation",  "test",        "epochs", "steps",
        "seconds", "steps_per_second", "interrupted", "arena_bytes", "weights_hash"};
    EXPECT_EQ(keys(result), expected);
    EXPECT_EQ(result["model"], "line");
    EXPECT_EQ(result["executor"], "cpu");
    EXPECT_EQ(keys(result["train"]), (std::vector<std::string>{"loss", "rmse"}));
    EXPECT_TRUE(result["validation"].is_null());
    EXPECT_EQ(keys(result["test"]), (std::vector<std::string>{"loss", "rmse"}));
    EXPECT_EQ(result["epochs"], 20);
    EXPECT_EQ(result["steps"], 20);
    EXPECT_EQ(result["interrupted"], false);
    EXPECT_GT(result["seconds"].get<double>(), 0);
    EXPECT_GT(result["steps_per_second"].get<double>(), 0);
    EXPECT_GT(result["arena_bytes"].get<std::uint64_t>(), 0u);
    const std::string hash = result["weights_hash"];
    EXPECT_EQ(hash.size(), 16u);
    EXPECT_TRUE(std::all_of(hash.begin(), hash.end(), [](unsigned char c) { return std::isxdigit(c) != 0; }));
    const double loss = result["train"]["loss"], rmse = result["train"]["rmse"];
    EXPECT_NEAR(rmse * rmse, loss, 1e-5 * loss);  // nothing is transformed: both are in original units
  }
}

TEST_F(Cli, TrainPrintsABlockForPeople) {
  const Outcome outcome = graphrun({model_});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"line on cpu", "train", "test", "loss", "rmse", "epochs", "steps", "seconds", "steps/s",
                           "arena", "bytes", "weights"}) {
    EXPECT_TRUE(has(outcome.out, part)) << part << " is not in:\n" << outcome.out;
  }
  EXPECT_FALSE(has(outcome.out, "validation"));
  EXPECT_FALSE(has(outcome.out, "epoch 20/20"));  // progress is not a result
  EXPECT_TRUE(has(outcome.err, "epoch 20/20"));
}

TEST_F(Cli, FlagsMayStandAnywhereAndSetTakesOneValue) {
  const auto epochs = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"--json", "--quiet"});  // in front: "--" ends the flags
    const Outcome outcome = graphrun(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.code == 0 ? Json::parse(outcome.out).at("epochs").get<int>() : -1;
  };
  EXPECT_EQ(epochs({"--set", "train.epochs=3", model_}), 3);
  EXPECT_EQ(epochs({"--set=train.epochs=4", "train", model_}), 4);
  EXPECT_EQ(epochs({"--executor", "cpu", "train", "--epochs", "5", model_}), 5);
  EXPECT_EQ(epochs({"--epochs", "5", "--", model_}), 5);
  EXPECT_EQ(epochs({model_, "--set", "train.epochs=6", "--set", "train.seed=7"}), 6);
  EXPECT_EQ(epochs({model_, "--set", "train.epochs=6", "--epochs=7"}), 7);
  EXPECT_EQ(epochs({model_, "--epochs=7", "--set", "train.epochs=6"}), 6);
  EXPECT_EQ(epochs({model_, "--epochs=7", "--epochs=8"}), 8);
}

TEST_F(Cli, SugarReachesTheModel) {
  const auto result = [&](std::vector<std::string> words) {
    words.insert(words.end(), {model_, "--json", "--quiet"});
    return Json::parse(graphrun(words).out);
  };
  EXPECT_EQ(result({"--batch=2"})["steps"], 40);
  EXPECT_EQ(result({"--batch=all"})["steps"], 20);
  EXPECT_NE(result({"--seed=5"})["weights_hash"], result({"--seed=6"})["weights_hash"]);
  EXPECT_EQ(result({"--seed=5"})["weights_hash"], result({"--seed=5"})["weights_hash"]);
}

// A variable may have been set by anybody: it chooses among what is built in.
TEST_F(Cli, AVariableBringsNoCode) {
  for (const char* value : {GRAPHRUN_ODD_EXECUTOR, "./x.so", "/"}) {
    const ProcessOptions options = {.environment = {std::string("GRAPHRUN_EXECUTOR=") + value}};
    expect_refused(graphrun({model_}, options), {"GRAPHRUN_EXECUTOR", value, "--executor"});
    expect_refused(graphrun({"plan", model_}, options), {"GRAPHRUN_EXECUTOR"});
    EXPECT_EQ(graphrun({model_, "--executor=cpu"}, options).code, 0);
  }
  EXPECT_EQ(graphrun({model_, "--executor=" GRAPHRUN_ODD_EXECUTOR}).code, 0);
}

TEST_F(Cli, LossesAreWrittenOneALine) {
  const std::string path = (folder_ / "losses.txt").string();
  ASSERT_EQ(graphrun({model_, "--losses", path, "--quiet"}).code, 0);
  std::ifstream stream(path);
  std::vector<double> losses;
  for (std::string line; std::getline(stream, line);) losses.push_back(std::stod(line));
  ASSERT_EQ(losses.size(), 20u);
  EXPECT_LT(losses.back(), losses.front());
}

TEST_F(Cli, DataIsLookedForInTheDataFolder) {
  const std::filesystem::path data = folder_ / "elsewhere";
  std::filesystem::create_directory(data);
  std::ofstream(data / "line.csv") << "x,y\n0,1\n1,3\n2,5\n";
  Json model = Json::parse(kLine);
  model["data"] = Json::parse(R"({"train": {"csv": "line.csv", "x": ["x"], "y": ["y"]}})");
  const std::string path = file("csv.json", model.dump(2));
  expect_refused(graphrun({path}), {"line.csv"});
  EXPECT_EQ(graphrun({path, "--data-dir", data.string()}).code, 0);
  EXPECT_EQ(graphrun({path}, {.environment = {"GRAPHRUN_DATA=" + data.string()}}).code, 0);
  EXPECT_EQ(graphrun({path, "--data-dir", data.string()}, {.environment = {"GRAPHRUN_DATA=/nowhere"}}).code, 0);
}

TEST_F(Cli, AMissingDeviceExitsWithFour) {
  const Outcome outcome = graphrun({model_, "--executor=cuda"}, {.environment = {"CUDA_VISIBLE_DEVICES="}});
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err, "");
}

TEST_F(Cli, PassesCanBeLeftOut) {
  const Outcome outcome = graphrun({model_, "--no-passes", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(Json::accept(outcome.out));
}

TEST_F(Cli, ALossThatIsNotFiniteFailsTheRun) {
  const Outcome outcome = graphrun({model_, "--json", "--set", "train.optimizer.sgd.lr=1e30"});
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_TRUE(has(outcome.err, "finite")) << outcome.err;
  EXPECT_FALSE(has(outcome.out, "nan"));
}

TEST_F(Cli, ResultsThatCannotBeWrittenFailTheRun) {
  const Outcome outcome = graphrun({model_, "--quiet"}, {.stdout_path = "/dev/full"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(has(outcome.err, "could not be written"));
}

TEST_F(Cli, AnInterruptKeepsTheResultsSoFar) {
  bool sent = false;
  ProcessOptions options;
  options.on_stderr = [&](pid_t process, std::string_view err) {
    if (sent || !has(err, "epoch ")) return;
    sent = true;
    kill(process, SIGINT);
  };
  const Outcome outcome =
      graphrun({model_, "--json", "--epochs=2000000000", "--set", "train.log_every=1000", "--seed=3"}, options);
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_GE(result["epochs"].get<std::int64_t>(), 1000);
  EXPECT_LT(result["epochs"].get<std::int64_t>(), 2000000000);
  EXPECT_EQ(result["interrupted"], true);
  EXPECT_TRUE(result["train"]["loss"].is_number());
}

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

// What was found at an earlier epoch does not look like now.
TEST_F(Cli, ValidationIsToldWithItsEpoch) {
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
      // Whole figures or none: each word of letters has its number.
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
    if (terminal && !no_terminal().empty()) GTEST_SKIP() << "told elsewhere; " << no_terminal();
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

TEST_F(Cli, VerboseTellsOfThePlan) {
  const Outcome outcome = graphrun({model_, "-v"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"train split: 4 samples", "arena:", "phase train:"}) {
    EXPECT_TRUE(has(outcome.err, part)) << part;
  }
}

TEST_F(Cli, ResultsTellOfRegions) {
  const auto lines_of = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {model_, "--quiet"});
    const Outcome outcome = graphrun(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> found;
    for (const std::string& line : lines(outcome.out)) {
      if (line.starts_with("regions ") || (!found.empty() && line.starts_with("   "))) found.push_back(line.substr(12));
    }
    return found;
  };
  const Json plan = Json::parse(graphrun({"plan", model_, "--json"}).out);
  const std::vector<std::string> found = lines_of({});
  ASSERT_EQ(found.size(), 4u);  // predict has two steps, and nothing to keep
  for (std::size_t i = 0; i + 1 < found.size(); ++i) {
    const Json& phase = plan["phases"][i];  // of this model each is one region whole
    const std::string steps = std::to_string(phase["nodes"].size());
    const std::string begin = phase["name"].get<std::string>() + ": " + steps + " of " + steps + " steps, ";
    EXPECT_TRUE(found[i].starts_with(begin)) << found[i] << "\n" << begin;
    EXPECT_TRUE(found[i].ends_with(" bytes never reach the arena")) << found[i];
  }
  EXPECT_EQ(found.back(), "-v tells why the other steps are in none");

  EXPECT_EQ(lines_of({"--executor=ref"}), std::vector<std::string>{"none; -v tells why"});
  EXPECT_TRUE(has(graphrun({model_, "-v", "--executor=ref"}).err, "ref: it runs steps one by one"));
  EXPECT_TRUE(lines_of({"--no-fuse"}).empty());
  EXPECT_EQ(lines_of({"--executor=" GRAPHRUN_ODD_EXECUTOR}).size(), 1u);  // not known by name
}

// The plug-in notes each step that it is asked about, which is once a compilation.
TEST_F(Cli, ATrainingCompilesOnce) {
  const std::string executor = "--executor=" GRAPHRUN_ODD_EXECUTOR;
  std::size_t steps = 0;
  const Json plan = Json::parse(graphrun({"plan", model_, "--json", executor}).out);
  for (const Json& phase : plan["phases"]) steps += phase["nodes"].size();
  ASSERT_GT(steps, 0u);
  for (const char* flag : {"--json", "--quiet", "-v"}) {
    const std::string asked = file("asked", "");
    const Outcome outcome = graphrun({model_, flag, executor}, {.environment = {"ODD_EXECUTOR_ASKED=" + asked}});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(std::filesystem::file_size(asked), steps) << flag;
  }
}

TEST_F(Cli, PlanSummarises) {
  const Outcome outcome = graphrun({"plan", model_});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part : {"line on cpu", "arena", "lower bound", "parameter", "activation", "phase", "steps",
                           "largest buffers", "train/loss:ring"}) {
    EXPECT_TRUE(has(outcome.out, part)) << part << " is not in:\n" << outcome.out;
  }
  EXPECT_GE(graphrun({"plan", model_, "-v"}).out.size(), outcome.out.size());
}

TEST_F(Cli, PlanForAGpuNeedsNone) {
  const Outcome outcome = graphrun({"plan", model_, "--executor=cuda", "--target=h200", "--json"},
                                   {.environment = {"CUDA_VISIBLE_DEVICES="}});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json plan = Json::parse(outcome.out);
  EXPECT_EQ(plan["executor"], "cuda");
  EXPECT_EQ(plan["target"], "h200");
}

TEST_F(Cli, PlanJsonDescribesTheProgram) {
  const Outcome outcome = graphrun({"plan", model_, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json plan = Json::parse(outcome.out);
  EXPECT_EQ(keys(plan),
            (std::vector<std::string>{"model", "executor", "target", "arena_bytes", "lower_bound", "poll_bytes",
                                      "bytes_by_kind", "phases", "buffers", "fusion", "fallbacks"}));
  const Json& fusion = plan["fusion"];
  EXPECT_EQ(keys(fusion), (std::vector<std::string>{"arena_bytes_without", "regions", "notes"}));
  ASSERT_FALSE(fusion["regions"].empty());
  EXPECT_EQ(fusion["regions"][0]["phase"], "train");
  EXPECT_GT(fusion["regions"][0]["bytes_in_tiles"], 0);
  const Json unfused = Json::parse(graphrun({"plan", model_, "--json", "--no-fuse"}).out);
  EXPECT_EQ(unfused["arena_bytes"], fusion["arena_bytes_without"]);
  EXPECT_TRUE(unfused["fusion"]["regions"].empty());
  const std::uint64_t arena = plan["arena_bytes"];
  EXPECT_GE(arena, plan["lower_bound"].get<std::uint64_t>());
  EXPECT_EQ(Json::parse(graphrun({model_, "--json"}).out)["arena_bytes"], arena);

  std::size_t id = 0, with_use = 0;
  for (const Json& buffer : plan["buffers"]) {
    EXPECT_EQ(buffer["id"], id++);
    const bool tile = buffer["kind"] == "tile";  // its offset is that in a tile
    EXPECT_TRUE(tile || buffer["offset"].get<std::uint64_t>() + buffer["bytes"].get<std::uint64_t>() <= arena);
    EXPECT_LT(buffer["storage_id"].get<std::size_t>(), plan["buffers"].size());
    EXPECT_EQ(buffer.contains("first_use"), buffer.contains("last_use"));
    if (!buffer.contains("first_use")) continue;
    ++with_use;
    EXPECT_LE(buffer["first_use"].get<int>(), buffer["last_use"].get<int>());
  }
  EXPECT_GT(with_use, 0u);
  ASSERT_FALSE(plan["phases"].empty());
  EXPECT_EQ(plan["phases"][0]["name"], "train");
  EXPECT_EQ(plan["phases"][0]["capacity"], 4);
  for (const Json& phase : plan["phases"]) {
    for (const Json& node : phase["nodes"]) {
      EXPECT_TRUE(node["op"].is_string());
      EXPECT_TRUE(node["attrs"].is_object());
      EXPECT_LT(node["output"].get<std::size_t>(), plan["buffers"].size());
    }
  }
}

TEST_F(Cli, PlanCanPrintTheProgram) {
  const Outcome outcome = graphrun({"plan", model_, "--program"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "matmul")) << outcome.out;
  EXPECT_EQ(graphrun({"plan", model_, "--program"}).out, outcome.out);
}

TEST_F(Cli, ShowPrintsTheGraphInItsForms) {
  Json model = Json::parse(kLine);  // no data is read
  model["data"] = Json::parse(R"({"train": {"csv": "nowhere.csv"}})");
  const std::string path = file("far.json", model.dump());
  const Outcome text = graphrun({"show", path});
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* part : {"line", "p.W", "f32(1, 1)", "loss = "}) EXPECT_TRUE(has(text.out, part)) << text.out;
  const Outcome gradients = graphrun({"show", path, "--gradients"});
  EXPECT_TRUE(has(gradients.out, "p.W:gradient")) << gradients.out;
  EXPECT_EQ(graphrun({"show", path, "--dot"}).out.rfind("digraph", 0), 0u);
  EXPECT_TRUE(has(graphrun({"show", model_, "--whole-step"}).out, "train/p")) << "minibatch to optimizer";
  const std::string rows = graphrun({"show", model_, "--rows"}).out;
  for (const char* part : {"phase train", "Row", "Shared", "Reduced", "region 1 rows", "region 1 once"})
    EXPECT_TRUE(has(rows, part)) << part << " is not in\n" << rows;
  const Outcome canonical = graphrun({"show", path, "--json"});
  ASSERT_EQ(canonical.code, 0) << canonical.err;
  EXPECT_EQ(Json::parse(canonical.out)["format"], 1);
  EXPECT_EQ(graphrun({"show", file("canonical.json", canonical.out), "--json"}).out, canonical.out);
  EXPECT_EQ(Json::parse(graphrun({"show", path, "--json", "--epochs=3"}).out)["train"]["epochs"], 3);
  expect_refused(graphrun({"show", path, "--json", "--dot"}), {"--json"});
  expect_refused(graphrun({"show", path, "--executor=ref"}), {"--executor goes with"});
}

TEST_F(Cli, CheckFindsEveryMistakeWithoutData) {
  Json model = Json::parse(kLine);
  model["data"] = Json::parse(R"({"train": {"csv": "nowhere.csv"}})");
  const std::string path = file("far.json", model.dump());
  const Outcome fine = graphrun({"check", path});
  EXPECT_EQ(fine.code, 0) << fine.err;
  EXPECT_TRUE(has(fine.out, "far.json: ok: line with 2 inputs, 2 parameters (2 numbers), 2 graph entries\n"))
      << fine.out;
  const Json summary = Json::parse(graphrun({"check", path, "--json"}).out);
  EXPECT_EQ(summary["inputs"][0]["shape"][0], "batch");
  EXPECT_TRUE(summary["inputs"][0]["shape"][1].is_number());
  EXPECT_EQ(keys(summary), (std::vector<std::string>{"model", "description", "batch", "inputs", "parameters", "outputs",
                                                     "parameter_elements", "entries"}));
  EXPECT_EQ(summary["batch"], "all");
  model["graph"][1] = "loss = mean((q - y) ^ 2)";
  model["train"]["epoch"] = 3;
  expect_refused(graphrun({"check", file("wrong.json", model.dump(2))}),
                 {"no value named q", "unknown key 'epoch'", "did you mean 'epochs'?"});
}

TEST_F(Cli, VerifySaysTwoLines) {
  const Outcome outcome = graphrun({"verify", model_, "--batch=3"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_EQ(outcome.err, "");
  ASSERT_EQ(lines(outcome.out).size(), 2u) << outcome.out;
  EXPECT_EQ(outcome.out.rfind("verified: ", 0), 0u) << outcome.out;
  EXPECT_TRUE(has(outcome.out, " values in 3 steps of training, 3 steps of evaluation, 2 steps of prediction, "))
      << outcome.out;
  EXPECT_TRUE(has(lines(outcome.out)[1], "as it runs: ")) << outcome.out;
  const Outcome same = graphrun({"verify", model_, "--executor=ref", "--against=ref", "--steps=1"});
  EXPECT_TRUE(has(same.out, "in 1 step of training, ")) << same.out;
  EXPECT_TRUE(has(same.out, ", all equal\n")) << same.out;
  const Outcome verbose = graphrun({"verify", model_, "-v", "--no-passes"});
  EXPECT_EQ(verbose.code, 0);
  for (const char* op : {"matmul", "sum", "record", "increment"}) EXPECT_TRUE(has(verbose.out, op)) << verbose.out;
}

TEST_F(Cli, VerifyJsonHasTheseKeys) {
  const Outcome outcome = graphrun({"verify", model_, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(keys(result), (std::vector<std::string>{"model", "executor", "against", "passed", "steps",
                                                    "evaluation_steps", "predictions", "values", "regions",
                                                    "fused_values", "fallbacks", "ops", "growth", "difference"}));
  EXPECT_GT(result["regions"], 0);
  EXPECT_GT(result["fused_values"], 0);
  EXPECT_EQ(result["passed"], true);
  EXPECT_TRUE(result["difference"].is_null());
  EXPECT_EQ(keys(result["ops"].at(0)), (std::vector<std::string>{"op", "steps", "values", "worst", "node"}));
}

TEST_F(Cli, ATrajectoryBeyondItsBoundExitsWithThree) {
  Json model = Json::parse(kLine);  // exp rounds otherwise on the two
  model["graph"].insert(model["graph"].begin() + 1, "q = exp(p / 8)");
  model["graph"].back() = "loss = mean((q - y) ^ 2)";
  const std::string curved = file("curved.json", model.dump());
  const Outcome free = graphrun({"verify", curved, "--trajectory", "--steps=500"});
  ASSERT_EQ(free.code, 0) << free.err;
  EXPECT_TRUE(has(free.out, "difference  parameter")) << free.out;
  EXPECT_TRUE(has(free.out, "500")) << free.out;
  EXPECT_TRUE(has(free.out, "verified: ")) << free.out;
  EXPECT_LT(lines(free.out).size(), 40u);
  const Outcome bounded = graphrun({"verify", curved, "--trajectory", "--steps=500", "--tolerance=1e-12"});
  EXPECT_EQ(bounded.code, 3) << bounded.out;
  EXPECT_TRUE(has(bounded.out, "not verified: train, step ")) << bounded.out;
  const Outcome json = graphrun({"verify", curved, "--trajectory", "--steps=500", "--tolerance=1e-12", "--json"});
  EXPECT_EQ(json.code, 3);
  const Json result = Json::parse(json.out);
  EXPECT_EQ(result["passed"], false);
  EXPECT_EQ(keys(result["difference"]),
            (std::vector<std::string>{"kind", "phase", "step", "program_step", "op", "node", "buffer", "index", "got",
                                      "expected", "tolerance", "text"}));
  EXPECT_EQ(result["difference"]["kind"], "parameter");
  // What diverges is not verified either.
  EXPECT_EQ(graphrun({"verify", curved, "--trajectory", "--steps=50", "--set", "train.optimizer.sgd.lr=1e30"}).code, 3);
}

TEST_F(Cli, VerifyDumpsAnyValue) {
  const Outcome text = graphrun({"verify", model_, "--dump=y"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out, "y f32(4, 1)\n1\n3\n5\n7\n");
  EXPECT_EQ(graphrun({"verify", model_, "--dump", "train/step:counter", "--steps=7"}).out,
            "train/step:counter u64()\n7\n");
  const Json json = Json::parse(graphrun({"verify", model_, "--dump=x", "--json"}).out);
  EXPECT_EQ(keys(json), (std::vector<std::string>{"name", "dtype", "shape", "values"}));
  EXPECT_EQ(json["values"], (std::vector<float>{0, 1, 2, 3}));

  const std::string path = (folder_ / "x.npy").string();
  const Outcome saved = graphrun({"verify", model_, "--dump=x", "--dump-to", path});
  EXPECT_EQ(saved.code, 0) << saved.err;
  EXPECT_EQ(saved.out, "");
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  ASSERT_EQ(bytes.size(), 128 + 4 * sizeof(float));
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(bytes.substr(10, 60), "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1), } ");
  EXPECT_EQ(bytes[127], '\n');
  float three = 0;
  std::memcpy(&three, bytes.data() + 128 + 3 * sizeof(float), sizeof(float));
  EXPECT_EQ(three, 3);
}

TEST_F(Cli, MistakesOfVerifyAreRefused) {
  expect_refused(graphrun({"verify", model_, "--steps=0"}), {"at least one step"});
  expect_refused(graphrun({"verify", model_, "--steps=-1"}), {"--steps"});
  expect_refused(graphrun({"verify", model_, "--tolerance=1e-3"}), {"--tolerance goes with --trajectory"});
  expect_refused(graphrun({"verify", model_, "--dump-to=x.npy"}), {"--dump-to goes with --dump"});
  expect_refused(graphrun({"verify", model_, "--dump=p", "--against=ref"}), {"--dump", "--against"});
  expect_refused(graphrun({"verify", model_, "--dump=train/mathmul_1"}), {"did you mean 'train/matmul_1'?"});
  expect_refused(graphrun({"verify", model_, "--dump=p", "--dump-to", (folder_ / "none" / "x").string()}),
                 {"cannot write"});
  expect_refused(graphrun({"verify", model_, "--against=reff"}), {"reff", "ref"});
  expect_refused(graphrun({model_, "--against=ref"}), {"--against goes with verify"});
  expect_refused(graphrun({"plan", model_, "--steps=3"}), {"--steps goes with verify"});
}

}  // namespace
}  // namespace graphrun::testing
