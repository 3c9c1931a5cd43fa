// malformed_input_test.cpp: what a model file, a name or a path may do to the terminal and to the program, and models
// that come from a pipe.
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "fixture.h"

namespace graphrun::testing {
namespace {

class Hostile : public Cli {
 protected:
  // The shell's words, with $G for the program and the folder of the test as the current one.
  Outcome shell(const std::string& command) const {
    return run({"/usr/bin/timeout", "600", "/bin/sh", "-c",
                "cd '" + folder_.string() + "' && G='" GRAPHRUN_CLI "'; " + command});
  }
};

bool fit_for_a_terminal(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f) return false;
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return false;
  }
  return true;
}

TEST_F(Hostile, NoControlCharacterReachesTheTerminal) {
  Json model = Json::parse(kLine);
  model["name"] = "n\x1b]0;owned\x07";
  model["description"] = "d\xc2\x9b[2J\n";
  const std::string good = file("a\x1b[2J.json", model.dump());
  model["graph"].push_back("q = tan\x1b[2J(x)");
  model["k\x1b\x01"] = 1;
  model["train"]["optimizer"] = Json{{"s\x1bgd", 1}};
  const std::string bad = file("b\x1b[2J.json", model.dump());
  for (const char* verb : {"check", "show", "train", "plan", "bench"}) {
    for (const std::string& path : {good, bad}) {
      for (const std::string format : {"text", "json"}) {
        std::vector<std::string> words = {verb, path, "--diagnostics=" + format};
        if (std::string_view(verb) == "bench") words.push_back("--steps=2");
        const Outcome outcome = graphrun(words);
        EXPECT_TRUE(fit_for_a_terminal(outcome.err)) << verb << outcome.err;
        EXPECT_TRUE(fit_for_a_terminal(outcome.out)) << verb << outcome.out;
        EXPECT_EQ(outcome.code, path == good ? 0 : 2);
      }
    }
    EXPECT_TRUE(fit_for_a_terminal(graphrun({verb, good, "--json"}).out));
  }
  EXPECT_TRUE(fit_for_a_terminal(graphrun({"show", good, "--dot"}).out));
  EXPECT_TRUE(fit_for_a_terminal(graphrun({"tr\x1b[2Jain", model_}).err));
  EXPECT_TRUE(fit_for_a_terminal(graphrun({"train", model_, "--set", "train.e\x1b[2J=1"}).err));
}

TEST_F(Hostile, AZeroByteCutsNoMessage) {
  Json model = Json::parse(kLine);
  model["train"]["a" + std::string(1, '\0') + "b"] = 1;
  model["train"]["zzz"] = 1;
  const Outcome outcome = graphrun({"check", file("zero.json", model.dump())});
  EXPECT_TRUE(has(outcome.err, "unknown key 'a\\x00b'")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "unknown key 'zzz'")) << outcome.err;
}

TEST_F(Hostile, FieldsOfMegabytesAreReportedInShort) {
  Json model = Json::parse(kLine);
  const std::string huge(5000000, 'h');
  model[huge] = 1;
  model["inputs"]["x"] = huge;
  model["train"]["last_batch"] = huge;
  model["train"]["optimizer"] = Json{{huge, 1}};
  model["graph"].push_back("q = " + huge + "(x)");
  for (const char* format : {"text", "json"}) {
    const Outcome outcome = graphrun({"check", file("huge.json", model.dump()), "--diagnostics", format});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_GE(lines(outcome.err).size(), 1u);
    EXPECT_LT(outcome.err.size(), 60000u);
  }
}

TEST_F(Hostile, ManyErrorsAreFiftyAndANumber) {
  Json model = Json::parse(kLine);
  for (int i = 0; i < 1000; ++i) model["graph"].push_back(i);
  const std::string path = file("many.json", model.dump());
  const Outcome text = graphrun({"check", path});
  EXPECT_TRUE(text.err.ends_with("\nand 950 more\n")) << text.err.substr(text.err.size() - 200);
  const Json list = Json::parse(graphrun({"check", path, "--diagnostics=json"}).err);
  ASSERT_EQ(list.size(), 51u);
  EXPECT_EQ(list[50]["code"], "more");
  EXPECT_EQ(list[50]["message"], "and 950 more");
}

// ---- pipes

TEST_F(Hostile, EveryVerbReadsAModelFromAPipe) {
  ASSERT_EQ(shell("$G line.json --quiet --save-weights w.npz").code, 0);
  file("rows.csv", "x\n1\n2\n");
  const std::string verbs[] = {"check M",
                               "check M --json",
                               "show M",
                               "show M --json",
                               "show M --rows",
                               "show M --gradients",
                               "plan M",
                               "train M --quiet",
                               "verify M",
                               "bench M --steps=2",
                               "eval M --weights w.npz",
                               "predict M rows.csv --weights w.npz"};
  for (const std::string& verb : verbs) {
    const auto with = [&](const std::string& model) {
      return "$G " + std::string(verb).replace(verb.find('M'), 1, model);
    };
    const int code = shell(with("line.json")).code;
    EXPECT_EQ(code, 0) << verb;
    EXPECT_EQ(shell("cat line.json | " + with("/dev/stdin")).code, code) << verb;
    EXPECT_EQ(shell("mkfifo pipe; cat line.json > pipe & " + with("pipe") + "; code=$?; rm pipe; exit $code").code,
              code)
        << verb;
    EXPECT_EQ(shell("ln -s /dev/stdin link; cat line.json | " + with("link") + "; code=$?; rm link; exit $code").code,
              code)
        << verb;
  }
}

TEST_F(Hostile, DataMayComeFromAPipe) {
  Json model = Json::parse(kLine);
  model["data"] =
      Json::parse(R"({"train": {"csv": "rows.csv", "range": [0, 2]}, "test": {"csv": "rows.csv", "range": [2, 3]}})");
  model["data"]["train"]["y"] = model["data"]["test"]["y"] = "y";
  file("model.json", model.dump());
  const std::string make = "mkfifo rows.csv; printf 'x,y\\n1,2\\n3,4\\n5,6\\n' > rows.csv & ";
  const Outcome outcome = shell(make + "$G model.json --quiet --save-weights w.npz");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

// ---- the limit of what is read

TEST_F(Hostile, TheLimitOfWhatIsReadIsAFlagAndAVariable) {
  std::string rows = "x,y\n";
  for (int i = 0; i < 20000; ++i) rows += "1,2\n";
  file("rows.csv", rows);  // 40,000 fields of 16 bytes, up to three times as many while the table grows
  Json model = Json::parse(kLine);
  model["data"] = Json::parse(R"({"train": {"csv": "rows.csv", "y": "y"}})");
  const std::string path = file("model.json", model.dump());
  const auto code = [&](std::vector<std::string> words, const std::string& variable = {}) {
    words.insert(words.begin(), {"train", path, "--quiet"});
    const Outcome outcome = graphrun(words, {.environment = {"GRAPHRUN_MAX_INPUT=" + variable}});
    EXPECT_EQ(has(outcome.err, "the limit is"), outcome.code != 0) << outcome.err;
    EXPECT_EQ(has(outcome.err, "--max-input=SIZE or GRAPHRUN_MAX_INPUT allows more"), outcome.code != 0) << outcome.err;
    return outcome.code;
  };
  EXPECT_EQ(code({}), 0);
  EXPECT_EQ(code({"--max-input=4M"}), 0);
  EXPECT_EQ(code({"--max-input", "600K"}), 2);
  EXPECT_EQ(code({}, "4194304"), 0);
  EXPECT_EQ(code({}, "600K"), 2);
  EXPECT_EQ(code({"--max-input=4M"}, "600K"), 0) << "the flag is the nearer";
  EXPECT_EQ(code({"--max-input=600K"}, "4M"), 2);
  for (const char* bad : {"0", "-1", "1.5G", "4GB", "much"}) {
    expect_rejected(graphrun({"check", path, std::string("--max-input=") + bad}), {"take a number of bytes", bad});
    expect_rejected(graphrun({"check", path}, {.environment = {std::string("GRAPHRUN_MAX_INPUT=") + bad}}),
                    {"take a number of bytes", bad});
  }
}

// ---- wrong messages

TEST_F(Hostile, TheFirstInterruptEndsAPauseOfBench) {
  bool sent = false;  // the pause is longer than run() waits
  ProcessOptions options;
  options.on_stderr = [&](pid_t process, std::string_view err) {
    if (sent || !has(err, "phase train")) return;
    sent = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until it pauses
    kill(process, SIGINT);
  };
  const Outcome outcome = graphrun({"bench", model_, "-v", "--idle-gap-ms=1000000"}, options);
  EXPECT_TRUE(sent);
  EXPECT_EQ(outcome.code, 130);
}

TEST_F(Hostile, WhatAnExecutorDoesNotComputeIsOneErrorWithItsPlace) {
  Json model = Json::parse(kLine);
  model["graph"] = Json::parse(
      R"j(["d = cast(x, dtype=f64)", {"name": "p", "op": "dense", "inputs": ["x"], "units": 1},
           "loss = mean((p - y) ^ 2) + cast(mean(d * d), dtype=f32)"])j");
  const std::string path = file("f64.json", model.dump(1));
  const Outcome cuda = graphrun({"plan", path, "--executor=cuda"});
  EXPECT_EQ(cuda.code, 2);
  EXPECT_TRUE(has(cuda.err, path + ":")) << cuda.err;
  EXPECT_TRUE(has(cuda.err, "d' (cast)")) << cuda.err;
  EXPECT_TRUE(has(cuda.err, "--executor=ref")) << cuda.err;
  EXPECT_EQ(lines(cuda.err).size(), 2u) << cuda.err;
  EXPECT_EQ(graphrun({path, "--executor=ref", "--quiet"}).code, 0);
}

TEST_F(Hostile, ANaNHasNoSign) {
  for (const char* text : {"loss = mean(log(x - 9) + p - y)", "loss = mean(0 - log(x - 9) + p - y)"}) {
    Json broken = Json::parse(kLine);
    broken["graph"][1] = text;
    const std::string path = file("nan.json", broken.dump());
    const Outcome outcome = graphrun({path});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_TRUE(has(outcome.err, "the loss is nan at step 1")) << outcome.err;
    const Outcome dump = graphrun({"verify", path, "--dump=loss"});
    EXPECT_EQ(dump.code, 0) << dump.err;
    EXPECT_TRUE(has(dump.out, "nan") && !has(dump.out, "-nan")) << dump.out;
  }
}

TEST_F(Hostile, AScalarParameterStartsFromANumber) {
  Json model = Json::parse(kLine);
  model["parameters"]["gain"] = Json::parse(R"({"shape": [], "init": 0.19})");
  model["graph"][1] = "loss = mean((p * gain - y) ^ 2)";
  const Outcome dump = graphrun({"verify", file("scalar.json", model.dump()), "--dump=gain"});
  EXPECT_EQ(dump.code, 0) << dump.err;
  EXPECT_TRUE(has(dump.out, "0.19")) << dump.out;
  const std::string canonical = graphrun({"show", file("scalar.json", model.dump()), "--json"}).out;
  EXPECT_EQ(graphrun({"show", file("again.json", canonical), "--json"}).out, canonical);
  model["parameters"]["gain"]["shape"] = {3};
  expect_rejected(graphrun({"check", file("vector.json", model.dump())}), {"f32(3)", "{\"constant\": v}"});
}

TEST_F(Hostile, HelpOfNothingNamesTheNearestTopic) {
  expect_rejected(graphrun({"help", "softmx"}), {"unknown command or topic 'softmx'", "did you mean softmax?"});
  expect_rejected(graphrun({"help", "optimizer"}), {"did you mean optimizers?"});
  expect_rejected(graphrun({"help", "trian"}), {"did you mean train?"});
  const Outcome other_letter = graphrun({"help", "oftmax"});
  expect_rejected(other_letter, {"graphrun help the topics"});
  EXPECT_FALSE(has(other_letter.err, "did you mean")) << other_letter.err;
  expect_rejected(graphrun({"help", "qqqqqq"}), {"graphrun --help lists the commands, graphrun help the topics"});
  expect_rejected(graphrun({"help", ""}), {"unknown command or topic ''"});
  expect_rejected(graphrun({"help", std::string(100000, 'a')}), {"unknown command or topic"});
  expect_rejected(graphrun({"help", "adam", "sgd"}), {"'sgd'"});
}

TEST_F(Hostile, AMisspeltFunctionIsTheOneWithTheSameLetters) {
  Json model = Json::parse(kLine);
  model["graph"].push_back("t = tahn(x)");
  expect_rejected(graphrun({"check", file("tahn.json", model.dump())}), {"did you mean 'tanh'?"});
}

TEST_F(Hostile, AFileOfDataIsNoModel) {
  const Outcome data = graphrun({file("spam.json", R"({"m": 2, "n": 1, "x": [1, 2], "y": [0, 1]})")});
  expect_rejected(data, {"spam.json", "file of data", "{\"json\": \"FILE\"}"});
  EXPECT_LE(lines(data.err).size(), 5u) << data.err;
  const Outcome other = graphrun({file("package.json", R"({"version": "1.0", "license": "MIT"})")});
  expect_rejected(other, {"not a model file"});
  EXPECT_LE(lines(other.err).size(), 5u) << other.err;
}

TEST_F(Hostile, ADumpSaysWhyAValueIsNotThere) {
  Json model = Json::parse(kLine);
  model["graph"].push_back("dead = x * 3");
  model["graph"].push_back("zero = p * 1");
  model["outputs"] = Json::parse(R"({"zero": "y"})");
  const std::string path = file("dead.json", model.dump());
  expect_rejected(graphrun({"verify", path, "--dump=dead"}), {"computes 'dead'", "graphrun predict"});
  expect_rejected(graphrun({"verify", path, "--dump=dead", "--no-passes"}), {"computes 'dead'"});
  expect_rejected(graphrun({"verify", path, "--dump=lossy"}), {"there is no value 'lossy'", "did you mean 'loss'?"});
}

}  // namespace
}  // namespace graphrun::testing
