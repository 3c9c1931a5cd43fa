// Completion as bash does it: the printed script is loaded and its function asked what it would offer.
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
  // What bash offers for the last of the words, one a line. bash cuts --flag=value into three words: give them so.
  std::vector<std::string> offered(const std::vector<std::string>& words) {
    std::string line = "cd '" + folder_.string() + "' && source <('" GRAPHRUN_CLI "' completion bash) && COMP_WORDS=(";
    for (const std::string& word : words) line += "'" + word + "' ";
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
  EXPECT_EQ(offered({"graphrun", "completion", ""}), (Words{"bash", "zsh"}));
}

TEST_F(Completion, FlagsAreThoseOfTheVerb) {
  EXPECT_EQ(offered({"graphrun", "verify", "--traj"}), Words{"--trajectory"});
  EXPECT_EQ(offered({"graphrun", "plan", "--traj"}), Words{""});
  EXPECT_EQ(offered({"graphrun", "--json", "plan", "line.json", "--prog"}), Words{"--program"});
  EXPECT_TRUE(contains(offered({"graphrun", "--"}), "--epochs"));
  EXPECT_TRUE(contains(offered({"graphrun", "line.json", "--"}), "--losses"));
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

TEST_F(Completion, TheScriptsAreOfTheShellThatWasNamed) {
  const Outcome zsh = graphrun({"completion", "zsh"});
  EXPECT_EQ(zsh.code, 0);
  EXPECT_EQ(zsh.out.rfind("#compdef graphrun", 0), 0u);
  expect_refused(graphrun({"completion"}), {"bash or zsh"});
  expect_refused(graphrun({"completion", "fish"}), {"'fish'"});
}

// The script's function with zsh's own ones replaced by some that print what they are given.
TEST_F(Completion, ZshIsOfferedTheSame) {
  if (std::system("command -v zsh >/dev/null") != 0) GTEST_SKIP() << "zsh is not installed";
  const std::string script = file("_graphrun", graphrun({"completion", "zsh"}).out);
  const auto offers = [&](const std::string& before, const std::string& word) {
    const std::string text =
        "compdef() {}; compadd() { shift; print -l -- \"$@\" }; _files() { print files \"$@\" }; compset() {}; "
        "source " +
        script + "; words=(graphrun " + before + " '" + word + "'); CURRENT=$#words; PREFIX='" + word + "'; _graphrun";
    const Outcome outcome = run({"/bin/sh", "-c", "exec zsh -f -c \"$0\"", text});
    EXPECT_EQ(outcome.err, "");
    return lines(outcome.out);
  };
  EXPECT_TRUE(contains(offers("", ""), "verify"));
  EXPECT_TRUE(contains(offers("", ""), "files -g *.json"));
  EXPECT_FALSE(contains(offers("plan", ""), "verify"));
  EXPECT_TRUE(contains(offers("verify", "--"), "--trajectory"));
  EXPECT_FALSE(contains(offers("--json plan", "--"), "--trajectory"));
  EXPECT_TRUE(contains(offers("plan --executor", ""), "cuda"));
  EXPECT_TRUE(contains(offers("plan", "--target=h"), "h200"));
  EXPECT_EQ(offers("completion", ""), (Words{"bash", "zsh"}));
}

}  // namespace
}  // namespace graphrun::testing
