// Completion as the shells do it: the printed script is loaded and asked what it would offer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "fixture.h"

namespace graphrun::testing {
namespace {

class Completion : public Cli {
 protected:
  // Completions by bash for the last word, one per line. bash splits --flag=value into three words: pass them so.
  std::vector<std::string> offered(const std::vector<std::string>& words) {
    std::string line = "cd '" + folder_.string() + "' && source <('" GRAPHRUN_CLI "' completion bash) && COMP_WORDS=(";
    for (const std::string& word : words) line += "'" + (&word == &words[0] ? GRAPHRUN_CLI : word) + "' ";
    line += "); COMP_CWORD=" + std::to_string(words.size() - 1) + "; _graphrun; printf '%s\\n' \"${COMPREPLY[@]}\"";
    const Outcome outcome = run({"/bin/bash", "--norc", "-c", line});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return lines(outcome.out);
  }
};

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

using Words = std::vector<std::string>;

TEST_F(Completion, VerbsAndModelsAreOffered) {
  EXPECT_EQ(offered({"graphrun", "ver"}), Words{"verify"});
  EXPECT_EQ(offered({"graphrun", "li"}), Words{"line.json"});
  EXPECT_EQ(offered({"graphrun", "plan", ""}), Words{"line.json"});  // one verb is enough
  file("loom.safetensors", "");
  file("loom.csv", "");
  EXPECT_EQ(offered({"graphrun", "plan", "lo"}), Words{"loom.safetensors"});
  EXPECT_EQ(offered({"graphrun", "predict", "loom.safetensors", "loom.c"}), Words{"loom.csv"});
  EXPECT_EQ(offered({"graphrun", "help", "ver"}), Words{"verify"});
  EXPECT_EQ(offered({"graphrun", "help", "optim"}), Words{"optimizers"});
  EXPECT_EQ(offered({"graphrun", "completion", ""}), (Words{"bash", "zsh", "fish"}));
}

TEST_F(Completion, FlagsAreThoseOfTheVerb) {
  EXPECT_EQ(offered({"graphrun", "verify", "--traj"}), Words{"--trajectory"});
  EXPECT_EQ(offered({"graphrun", "plan", "--traj"}), Words{""});
  EXPECT_EQ(offered({"graphrun", "--json", "plan", "line.json", "--prog"}), Words{"--program"});
  EXPECT_TRUE(contains(offered({"graphrun", "--"}), "--epochs"));
  EXPECT_TRUE(contains(offered({"graphrun", "line.json", "--"}), "--losses"));
  EXPECT_EQ(offered({"graphrun", "plot", "--log"}), Words{"--log-scale"});  // no former spellings
  EXPECT_EQ(offered({"graphrun", "init", "--target"}), Words{""});
  EXPECT_EQ(offered({"graphrun", "--no-f"}), Words{"--no-fuse"});
}

TEST_F(Completion, ValuesFollowTheirFlag) {
  EXPECT_EQ(offered({"graphrun", "--executor", "c"}), (Words{"cpu", "cuda"}));
  EXPECT_EQ(offered({"graphrun", "--executor", "=", "r"}), Words{"ref"});
  EXPECT_EQ(offered({"graphrun", "plan", "--target", "=", "h2"}), Words{"h200"});
  EXPECT_EQ(offered({"graphrun", "--diagnostics", ""}), (Words{"text", "json"}));
  EXPECT_EQ(offered({"graphrun", "--jit", ""}), (Words{"prefer", "require", "off"}));
  EXPECT_EQ(offered({"graphrun", "--losses", "li"}), Words{"line.json"});
  EXPECT_EQ(offered({"graphrun", "--epochs", ""}), Words{""});  // a number: nothing to offer
}

// Settings of the model on the command line, and their values.
TEST_F(Completion, SetOffersThePathsOfTheModelOnTheLine) {
  EXPECT_EQ(offered({"graphrun", "line.json", "--set", "train.ep"}), Words{"train.epochs="});
  EXPECT_EQ(offered({"graphrun", "line.json", "--set", "=", "train.ep"}), Words{"train.epochs="});
  EXPECT_EQ(offered({"graphrun", "sweep", "line.json", "--over", "graph.p.u"}), Words{"graph.p.units="});
  EXPECT_EQ(offered({"graphrun", "--set", "train.optimizer.", "line.json"}), Words{"line.json"});  // the last word
  EXPECT_EQ(offered({"graphrun", "line.json", "--set", "train.optimizer", "=", "ad"}),
            (Words{"adagrad", "adam", "adamw"}));
  EXPECT_EQ(offered({"graphrun", "line.json", "--set", "=", "train.optimizer", "=", "n"}), Words{"nesterov"});
  EXPECT_EQ(offered({"graphrun", "line.json", "--set", "train.shuffle", "="}), (Words{"true", "false"}));
  EXPECT_EQ(offered({"graphrun", "line.json", "--set", "train.epochs", "="}), Words{"20"});
  EXPECT_EQ(offered({"graphrun", "line.json", "--set", "train.epochs", "=", "5", "--batc"}), Words{"--batch"});
  EXPECT_EQ(offered({"graphrun", "--set", "train.ep"}), Words{""});  // no model: nothing to go by
  file("broken.json", "{");
  EXPECT_EQ(offered({"graphrun", "broken.json", "--set", "train.ep"}), Words{""});
}

TEST_F(Completion, TheScriptsAreOfTheShellThatWasNamed) {
  const Outcome zsh = graphrun({"completion", "zsh"});
  EXPECT_EQ(zsh.code, 0);
  EXPECT_EQ(zsh.out.rfind("#compdef graphrun", 0), 0u);
  EXPECT_EQ(graphrun({"completion", "fish"}).out.rfind("# fish completion", 0), 0u);
  expect_rejected(graphrun({"completion"}), {"bash, zsh or fish"});
  expect_rejected(graphrun({"completion", "csh"}), {"'csh'"});
}

// The script's function with zsh's own ones replaced by some that print what they are given.
TEST_F(Completion, ZshIsOfferedTheSame) {
  if (std::system("command -v zsh >/dev/null") != 0) GTEST_SKIP() << "zsh is not installed";
  const std::string script = file("_graphrun", graphrun({"completion", "zsh"}).out);
  const auto offers = [&](const std::string& before, const std::string& word) {
    const std::string text =
        "compdef() {}; compadd() { shift; print -l -- \"$@\" }; _files() { print files \"$@\" }; compset() {}; "
        "source " +
        script + "; cd " + folder_.string() + "; words=(" GRAPHRUN_CLI " " + before + " '" + word +
        "'); CURRENT=$#words; PREFIX='" + word + "'; _graphrun";
    const Outcome outcome = run({"/bin/sh", "-c", "exec zsh -f -c \"$0\"", text});
    EXPECT_EQ(outcome.err, "");
    return lines(outcome.out);
  };
  EXPECT_TRUE(contains(offers("", ""), "verify"));
  EXPECT_TRUE(contains(offers("", ""), "files -g *.(json|safetensors)"));
  EXPECT_FALSE(contains(offers("plan", ""), "verify"));
  EXPECT_TRUE(contains(offers("verify", "--"), "--trajectory"));
  EXPECT_FALSE(contains(offers("--json plan", "--"), "--trajectory"));
  EXPECT_TRUE(contains(offers("plan --executor", ""), "cuda"));
  EXPECT_TRUE(contains(offers("plan", "--target=h"), "h200"));
  EXPECT_EQ(offers("completion", ""), (Words{"bash", "zsh", "fish"}));
  EXPECT_TRUE(contains(offers("line.json --set", "train.ep"), "train.epochs="));
  EXPECT_TRUE(contains(offers("line.json --set", "train.optimizer="), "adamw"));
  EXPECT_TRUE(contains(offers("line.json", "--set=train.optimizer="), "adamw"));
}

// fish says itself what it would offer.
TEST_F(Completion, FishIsOfferedTheSame) {
  if (std::system("command -v fish >/dev/null") != 0) GTEST_SKIP() << "fish is not installed";
  const std::string script = file("graphrun.fish", graphrun({"completion", "fish"}).out);
  const auto offers = [&](const std::string& line) {
    const std::string text = "cd " + folder_.string() + "; function graphrun; " GRAPHRUN_CLI " $argv; end; source " +
                             script + "; complete -C '" + line + "'";
    const Outcome outcome =
        run({"/bin/sh", "-c", "exec fish --no-config -c \"$0\"", text}, {.environment = {"HOME=" + folder_.string()}});
    EXPECT_EQ(outcome.err, "") << line;
    Words words;
    for (const std::string& one : lines(outcome.out)) words.push_back(one.substr(0, one.find('\t')));
    return words;
  };
  EXPECT_EQ(offers("graphrun ver"), Words{"verify"});
  EXPECT_TRUE(contains(offers("graphrun plan "), "line.json"));
  EXPECT_FALSE(contains(offers("graphrun plan "), "verify"));
  EXPECT_EQ(offers("graphrun verify --traj"), Words{"--trajectory"});
  EXPECT_FALSE(contains(offers("graphrun plan --"), "--trajectory"));
  EXPECT_EQ(offers("graphrun --executor c"), (Words{"cpu", "cuda"}));
  EXPECT_EQ(offers("graphrun completion "), (Words{"bash", "fish", "zsh"}));
  EXPECT_EQ(offers("graphrun line.json --set train.ep"), Words{"train.epochs="});
  EXPECT_EQ(offers("graphrun line.json --set train.optimizer=adam"),
            (Words{"train.optimizer=adam", "train.optimizer=adamw"}));
}

}  // namespace
}  // namespace graphrun::testing
