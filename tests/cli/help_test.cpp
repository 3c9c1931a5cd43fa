// help_test.cpp: `graphrun help TOPIC`: every name of the registries, and examples that a model may be made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "fixture.h"
#include "graphrun/show.h"

namespace graphrun::testing {
namespace {

class Help : public Cli {
 protected:
  // Examples under "In a model file:", as members of an object, without those that have placeholders like <a number>.
  static std::vector<Json> examples(const std::string& topic) {
    std::vector<Json> found;
    const std::vector<std::string> text = lines(help_topic(topic));
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      if (text[i] == "In a model file:" && !has(text[i + 1], "<"))
        found.push_back(Json::parse("{" + text[i + 1] + "}"));
    }
    return found;
  }

  // Names of a list, the first column.
  static std::vector<std::string> listed(const std::string& kind) {
    std::vector<std::string> names;
    for (const std::string& line : lines(help_topic(kind))) {
      if (line.starts_with("  ") && line[2] != ' ') names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    return names;
  }

  void expect_valid(const std::string& topic, const Json& model) {
    const Outcome outcome = graphrun({"check", file("example.json", model.dump())});
    EXPECT_EQ(outcome.code, 0) << topic << "\n" << outcome.err;
  }
};

TEST_F(Help, ReportsAnOptimizerWithItsKeys) {
  const Outcome adam = graphrun({"help", "adam"});
  EXPECT_EQ(adam.code, 0) << adam.err;
  for (const char* part : {"an optimizer", "sqrt(v) + eps", "beta1", "(default: 0.9)", "(default: 1e-08)", "(required)",
                           R"("train": {"optimizer": {"adam": {"lr": 0.01}}})"})
    EXPECT_TRUE(has(adam.out, part)) << part << " is not in\n" << adam.out;
}

TEST_F(Help, ReportsALayerWithItsShapes) {
  const std::string dense = graphrun({"help", "dense"}).out;
  for (const char* part : {"a layer", "W (in, units)", "inputs", "units", "activation", "glorot_uniform", "or false"})
    EXPECT_TRUE(has(dense, part)) << part << " is not in\n" << dense;
}

TEST_F(Help, ANameOfTwoKindsTellsBoth) {
  const std::string mse = graphrun({"help", "mse"}).out;
  EXPECT_TRUE(has(mse, "mse: a function") && has(mse, "mse: a metric")) << mse;
}

TEST_F(Help, SectionsListTheirKeysAndGroupsTheirFlags) {
  for (const auto& [topic, parts] : std::map<std::string, std::vector<std::string>>{
           {"model", {"constants", "outputs", "See also"}},
           {"data", {"source", "csv", "stratify", "transform"}},
           {"training", {"minimize", "Keys of early_stopping:", "patience", "min_factor", "every"}},
           {"early_stopping", {"training: the section", "Keys of early_stopping:", "patience", "lists all keys"}},
           {"inputs", {"model: the keys of a model file"}},
           {"losses", {"softmax_cross_entropy", "mae"}},
           {"logs", {"--log FILE", "--losses", "--no-cupti"}},
           {"environment", {"environment variables that set defaults", "GRAPHRUN_DATA", "NO_COLOR"}},
           {"execution", {"--executor", "--jit", "--tiling"}}}) {
    const Outcome help = graphrun({"help", topic});
    EXPECT_EQ(help.code, 0) << topic;
    for (const std::string& line : lines(help.out)) EXPECT_LE(line.size(), 110u) << topic << "\n" << line;
    for (const std::string& part : parts) EXPECT_TRUE(has(help.out, part)) << part << " is not in\n" << help.out;
    EXPECT_FALSE(has(help.out, "`\"") || has(help.out, "](")) << help.out;
  }
  EXPECT_EQ(graphrun({"help", "initialisers"}).out, graphrun({"help", "initializers"}).out);
  for (const char* word : {"missing", "csv"})
    EXPECT_EQ(graphrun({"help", word}).out, graphrun({"help", "data"}).out) << word;
  for (const char* word : {"checkpoint", "resume"})
    EXPECT_EQ(graphrun({"help", word}).out, graphrun({"help", "train"}).out) << word;
  EXPECT_EQ(graphrun({"help", "surface"}).out, graphrun({"help", "plot"}).out);
}

TEST_F(Help, EveryListedNameIsATopicAndEveryLineFits) {
  const std::string help = graphrun({"help"}).out;
  for (const std::string& kind : help_kinds()) {
    EXPECT_TRUE(has(help, kind)) << kind;
    EXPECT_GE(listed(kind).size(), 1u) << kind;
    for (const std::string& name : listed(kind)) EXPECT_TRUE(has(help_topic(name), name + ": a"));
  }
  for (const std::string& topic : help_topics()) {
    for (const std::string& line : lines(help_topic(topic))) EXPECT_LE(line.size(), 120u) << topic << "\n" << line;
  }
}

TEST_F(Help, EveryOptimizerScheduleAndMetricHasAnExampleThatWorks) {
  for (const std::string& name : listed("optimizers")) {
    for (const Json& example : examples(name)) {
      Json model = Json::parse(kLine);
      model["train"]["optimizer"] = example["train"]["optimizer"];
      expect_valid(name, model);
    }
  }
  for (const std::string& name : listed("schedules")) {
    Json model = Json::parse(kLine);
    model["train"]["optimizer"]["sgd"]["lr"] = examples(name).at(0)["lr"];
    expect_valid(name, model);
  }
  Json classes = Json::parse(kLine);
  classes["data"] = Json::parse(R"({"train": {"inline": {"x": [[0], [1]], "y": [[0], [1]]}}})");
  classes["graph"][1] = "loss = mean(sigmoid_cross_entropy(p, y))";
  for (const std::string& name : listed("metrics")) {
    for (Json model : {Json::parse(kLine), classes}) {
      model["train"]["metrics"] = examples(name).back()["train"]["metrics"];
      const Outcome outcome = graphrun({"check", file("example.json", model.dump())});
      EXPECT_TRUE(outcome.code == 0 || has(outcome.err, name + " needs an output with a target of")) << outcome.err;
    }
  }
}

TEST_F(Help, EveryLayerHasAnExampleThatWorks) {
  for (const std::string& name : listed("layers")) {
    Json model = Json::parse(kLine);
    model["graph"].push_back("classes = cast(x, dtype=i32)");
    model["graph"].push_back("series = reshape(x, shape=[-1, 1, 1])");
    Json entry = examples(name).at(0)["graph"][0];
    entry["name"] = "unused";
    if (name == "embedding") entry["inputs"][0] = "classes";
    if (name.starts_with("conv")) {
      const bool signal = name.ends_with("1d");
      model["graph"].push_back(signal ? "wide = pad(reshape(x, shape=[-1, 1, 1]), axis=1, after=7)"
                                      : "tall = pad(reshape(x, shape=[-1, 1, 1, 1]), axis=1, after=7)");
      if (!signal) model["graph"].push_back("wide = pad(tall, axis=2, after=7)");
      entry["inputs"][0] = "wide";
    }
    if (name == "rnn" || name == "gru" || name == "lstm") entry["inputs"][0] = "series";
    model["graph"].push_back(entry);
    expect_valid(name, model);
  }
}

TEST_F(Help, EveryActivationWorksInALayer) {
  for (const std::string& name : listed("activations")) {
    Json model = Json::parse(kLine);
    model["graph"][0] = examples("dense").at(0)["graph"][0];
    model["graph"][0]["name"] = "h";
    model["graph"][0]["activation"] = name;
    model["graph"].insert(model["graph"].begin() + 1,
                          Json::parse(R"({"name": "p", "op": "dense", "inputs": ["h"], "units": 1})"));
    expect_valid(name, model);
  }
}

// Applies functions to operands of one shape. Most accept it; the others report a shape mismatch and no other error.
TEST_F(Help, EveryFunctionHasAnExampleThatReads) {
  for (const std::string& name : listed("ops")) {
    Json entry = examples(name).at(0)["graph"][0];
    Json model = Json::parse(kLine);
    model["graph"].push_back("wide = concat(x, x, axis=1)");
    if (entry.is_string()) {
      const std::string text = entry;
      std::string operands = has(text, "condition") ? "x > 0, x, x" : "wide";
      if (!has(text, "condition"))
        for (auto comma = std::ranges::count(text, ','); comma > 0; --comma) operands += ", wide";
      model["graph"].push_back("unused_" + text.substr(0, text.find('(')) + "(" + operands + ")");
    } else {
      entry["name"] = "unused";
      for (Json& input : entry["inputs"]) input = "wide";
      model["graph"].push_back(entry);
    }
    const Outcome outcome = graphrun({"check", file("example.json", model.dump()), "--diagnostics=json"});
    if (outcome.code == 0) continue;
    for (const Json& failure : Json::parse(outcome.err)) {
      const std::string code = failure["code"];
      EXPECT_TRUE(code.starts_with("shape.") || code.starts_with("dtype.")) << name << "\n" << outcome.err;
    }
  }
}

// graphrun(1): the complete help of all commands, in roff that groff formats without warnings.
TEST_F(Help, TheManualTellsEveryVerbFlagAndVariable) {
  const Outcome manual = graphrun({"help", "--man"});
  ASSERT_EQ(manual.code, 0) << manual.err;
  EXPECT_TRUE(manual.out.starts_with(".TH GRAPHRUN 1 "));
  EXPECT_EQ(graphrun({"help", "--man"}).out, manual.out);
  for (const char* section :
       {"NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "FLAGS", "ENVIRONMENT", "EXIT STATUS", "FILES", "EXAMPLES"})
    EXPECT_TRUE(has(manual.out, std::string("\n.SH ") + section + "\n")) << section;
  const auto as_written = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('-', at)) != std::string::npos; at += 2) text.insert(at, "\\");
    return text;
  };
  std::size_t told = 0;
  std::string help = graphrun({"--help"}).out;
  for (const char* verb : {"train", "predict", "init", "plan", "verify", "bench", "show", "sweep", "plot", "studio"})
    help += graphrun({verb, "--help"}).out;
  for (const std::string& line : lines(help)) {
    if (!line.starts_with("  ") || line[2] == ' ' || line.starts_with("  graphrun")) continue;
    const std::string name = line.substr(2, line.find_first_of(" ,", 2) - 2);
    EXPECT_TRUE(has(manual.out, as_written(name))) << name;
    ++told;
  }
  EXPECT_GT(told, 90u);
  for (const std::string& line : lines(manual.out)) EXPECT_FALSE(line.starts_with("'")) << line;
}

TEST_F(Help, TheManualIsSetWithoutAWarning) {
  if (run({"/bin/sh", "-c", "command -v groff"}).code != 0) GTEST_SKIP() << "groff is not installed";
  const std::string page = file("graphrun.1", graphrun({"help", "--man"}).out);
  const Outcome set = run({"/bin/sh", "-c", "exec groff -ww -man -Tascii '" + page + "'"});
  EXPECT_EQ(set.code, 0);
  EXPECT_EQ(set.err, "");
  EXPECT_TRUE(has(set.out, "130")) << set.out;
}

}  // namespace
}  // namespace graphrun::testing
