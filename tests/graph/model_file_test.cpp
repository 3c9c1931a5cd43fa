// model_file_test.cpp: what a model file means, options and overrides, and errors that bad/ does not hold.
#include <gtest/gtest.h>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/format/overrides.h"
#include "graphrun/error.h"
#include "graphrun/model.h"
#include "graphrun/op.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

const std::string kGood = R"json({
  "format": 1,
  "name": "test",
  "constants": {"gain": 1.5},
  "data": {"train": {"inline": {"x": [[0, 0], [0, 1], [1, 0]], "y": [0, 1, 1]}}},
  "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
  "parameters": {
    "W": {"shape": [2, 3], "init": {"normal": 0.1}},
    "b": {"shape": [3], "init": "zeros", "decay": false}
  },
  "graph": [
    "h = gain * tanh(x @ W + b)",
    {"name": "y_hat", "op": "dense", "inputs": ["h"], "units": 1, "init": {"uniform": [-1, 1]}},
    "loss = mean(square(y_hat - y))",
    {"name": "worst", "op": "sum", "inputs": ["loss"]}
  ],
  "outputs": {"y_hat": "y"},
  "train": {
    "minimize": "loss",
    "metrics": ["mse", "worst"],
    "optimizer": {"sgd": {"lr": 0.1}},
    "batch": 2,
    "epochs": 3,
    "seed": 5
  }
}
)json";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("the test replaces what is not there: " + from);
  return text.replace(at, from.size(), to);
}

Model load(const std::string& text, const LoadOptions& options = {}) {
  return load_model(test::write_model(text), options);
}

std::vector<Diagnostic> mistakes_in(const std::string& text, const LoadOptions& options = {}) {
  try {
    load(text, options);
  } catch (const Error& error) {
    return error.diagnostics();
  }
  return {};
}

TEST(ModelFile, GoodFile) {
  const Model model = load(kGood);
  EXPECT_EQ(model.name, "test");
  EXPECT_EQ(model.graph.batch(), 2);
  ASSERT_EQ(model.outputs.size(), 1u);
  EXPECT_EQ(model.outputs[0].name, "y_hat");
  EXPECT_EQ(model.outputs[0].target, "y");
  EXPECT_EQ(model.train.minimize, model.graph.find("loss"));
  ASSERT_EQ(model.train.metrics.size(), 2u);
  EXPECT_FALSE(model.train.metrics[0].value.valid());
  EXPECT_EQ(model.train.metrics[1].value, model.graph.find("worst"));
  EXPECT_EQ(model.train.optimizer.name, "sgd");
  ASSERT_EQ(model.train.optimizer.attributes.size(), 1u);
  EXPECT_EQ(model.train.optimizer.attributes[0], (std::pair<std::string, double>("lr", 0.1)));
  EXPECT_EQ(model.train.epochs, 3);
  EXPECT_EQ(model.train.seed, 5u);
  const GraphBuilder::Impl& impl = model.graph.impl();
  const ir::NodeId weight = model.graph.find("y_hat.W").id;
  EXPECT_EQ(impl.parameters.at(weight).init.kind, Init::Kind::uniform);
  EXPECT_EQ(impl.parameters.at(model.graph.find("W").id).init.b, 0.1);
  EXPECT_FALSE(impl.parameters.at(model.graph.find("b").id).decay);
  EXPECT_EQ(impl.graph[model.graph.find("h").id].source.line, 12);
  ASSERT_NE(model.data.find("train"), nullptr);
  EXPECT_EQ(model.data.find("train")->samples(), 3);
}

TEST(ModelFile, BatchAllTakesTheTrainingSplit) {
  EXPECT_EQ(load(replaced(kGood, "\"batch\": 2", "\"batch\": \"all\"")).graph.batch(), 3);
  EXPECT_EQ(load(replaced(kGood, "\"batch\": 2,", "")).graph.batch(), 3);
}

TEST(ModelFile, InlineValuesAndOutputLists) {
  const Model model = load(replaced(replaced(kGood, R"("init": {"normal": 0.1})", R"("init": [[1, 2, 3], [4, 5, 6]])"),
                                    R"({"y_hat": "y"})", R"(["y_hat", "h"])"));
  const Init& init = model.graph.impl().parameters.at(model.graph.find("W").id).init;
  ASSERT_EQ(init.kind, Init::Kind::values);
  EXPECT_EQ(init.tensor.elements<double>()[5], 6);
  EXPECT_EQ(model.outputs[0].target, "y");
  EXPECT_EQ(model.outputs[1].target, "");
}

TEST(ModelFile, LearningRateSchedule) {
  const Model model = load(replaced(kGood, "\"lr\": 0.1", R"("lr": {"cosine": {"from": 0.1, "to": 0, "epochs": 3}})"));
  ASSERT_TRUE(model.train.optimizer.lr.has_value());
  EXPECT_EQ(model.train.optimizer.lr->name, "cosine");
  EXPECT_EQ(model.train.optimizer.lr->attributes.size(), 3u);
}

TEST(ModelFile, ObjectsTakeConstantsAndEitherWordForAxis) {
  const Model model = load(replaced(kGood, "{\"name\": \"worst\", \"op\": \"sum\", \"inputs\": [\"loss\"]}",
                                    "{\"name\": \"g\", \"op\": \"mul\", \"inputs\": [\"h\", \"gain\"]}, "
                                    "{\"name\": \"worst\", \"op\": \"sum\", \"inputs\": [\"g\"], \"axes\": [0, 1]}"));
  EXPECT_EQ(to_string(model.graph.type(model.graph.find("g"))), "f32(batch, 3)");
  EXPECT_EQ(to_string(model.graph.type(model.graph.find("worst"))), "f32()");
}

TEST(ModelFile, LayerParametersAreNamesInExpressions) {
  const Model model =
      load(replaced(kGood, "\"loss = mean(square(y_hat - y))\"",
                    "\"tied = y_hat @ transpose(y_hat.W) + y_hat.b\", \"loss = mean(tied) + mse(y_hat, y)\""));
  EXPECT_EQ(to_string(model.graph.type(model.graph.find("tied"))), "f32(batch, 3)");
}

TEST(ModelFile, WholeNumbersMayHaveAPoint) {
  const Model model =
      load(replaced(replaced(kGood, "\"units\": 1", "\"units\": 1.0"), "\"epochs\": 3", "\"epochs\": 3e0"));
  EXPECT_EQ(model.train.epochs, 3);
}

TEST(ModelFile, NothingIsMinimizedThatHasNoGradient) {
  const std::string hits = replaced(kGood, "mean(square(y_hat - y))", "mean(y_hat > y)");
  ASSERT_EQ(mistakes_in(hits).size(), 1u);
  EXPECT_EQ(mistakes_in(hits)[0].code, "gradient.none");
  // A path without a gradient beside one that has it is fine: the metric of a loss.
  EXPECT_TRUE(mistakes_in(replaced(kGood, "mean(square(y_hat - y))", "mse(y_hat, y) + 0.1 * mean(where(h > 0, h, -h))"))
                  .empty());
}

TEST(ModelFile, ErrorsOfGraphAndDataComeTogether) {
  std::string text = replaced(kGood, "tanh(", "tanhh(");
  text = replaced(text, "\"y\": [0, 1, 1]", "\"y\": [0, 1]");
  EXPECT_EQ(mistakes_in(text).size(), 2u);
}

TEST(ModelFile, RandomEditsNeverCrash) {
  // Each byte in turn is lost, doubled or changed; whatever comes is a model or an Error.
  std::size_t good = 0;
  for (std::size_t i = 0; i < kGood.size(); i += 3) {
    for (int kind = 0; kind < 3; ++kind) {
      std::string text = kGood;
      if (kind == 0) text.erase(i, 1);
      if (kind == 1) text.insert(i, 1, text[i]);
      if (kind == 2) text[i] = '7';
      try {
        load(text);
        ++good;
      } catch (const Error& error) {
        EXPECT_FALSE(error.diagnostics().empty());
      }
    }
  }
  EXPECT_GT(good, 0u);
}

LoadOptions set(std::vector<std::pair<std::string, std::string>> overrides) {
  LoadOptions options;
  options.overrides = std::move(overrides);
  return options;
}

TEST(Overrides, ReachKeysListItemsAndNamedEntries) {
  const Model model = load(kGood, set({{"train.epochs", "7"},
                                       {"train.optimizer.sgd.lr", "0.5"},
                                       {"graph.y_hat.bias", "false"},
                                       {"graph.0", "h = relu(x @ W)"},
                                       {"train.batch", "all"},
                                       {"parameters.W.init", "{\"constant\": 2}"},
                                       {"train.log_every", "2"},
                                       {"train.epochs", "8"}}));
  EXPECT_EQ(model.train.epochs, 8);  // the later one wins
  EXPECT_EQ(model.train.log_every, 2);
  EXPECT_EQ(model.train.optimizer.attributes[0].second, 0.5);
  EXPECT_EQ(model.graph.batch(), 3);
  EXPECT_EQ(model.graph.impl().parameters.at(model.graph.find("W").id).init.a, 2);
  EXPECT_FALSE(model.graph.impl().names.contains("y_hat.b"));
  EXPECT_EQ(model.graph.impl().graph[model.graph.find("h").id].op, *find_op("relu"));
}

TEST(Overrides, ErrorsNameTheSetting) {
  struct Case {
    std::string path, value, file, words;
  };
  const std::vector<Case> cases = {
      {"train.epochs", "many", "--set train.epochs=many", "an integer"},
      {"train.epoch", "3", "--set train.epoch=3", "did you mean 'epochs'?"},
      {"trian.epochs", "3", "--set trian.epochs=3", "did you mean 'train'?"},
      {"lr", "3", "--set lr=3", "did you mean --set train.optimizer.sgd.lr=VALUE?"},
      {"learning-rate", "3", "--set learning-rate=3", "did you mean --set train.optimizer.sgd.lr=VALUE?"},
      {"optimizer.lr", "3", "--set optimizer.lr=3", "did you mean --set train.optimizer.sgd.lr=VALUE?"},
      {"train.lr", "3", "--set train.lr=3", "did you mean --set train.optimizer.sgd.lr=VALUE?"},
      {"train.optimizer.lr", "3", "--set train.optimizer.lr=3", "did you mean --set train.optimizer.sgd.lr=VALUE?"},
      {"train.threshold", R"({"recall": 0.95})", R"(--set train.threshold={"recall": 0.95})",
       R"(expected an object with the key "by""threshold": {"by": {"recall": 0.95}})"},
      {"train.threshold", "0.3", "--set train.threshold=0.3", "graphrun eval --threshold 0.3 takes a given one"},
      {"batch_size", "3", "--set batch_size=3", "did you mean --set train.batch=VALUE?"},
      {"momentum", "3", "--set momentum=3", "did you mean --set train.optimizer.momentum.momentum=VALUE?"},
      {"units", "3", "--set units=3", "did you mean --set graph.y_hat.units=VALUE?"},
      {"data.splot", "null", "--set data.splot=null", "did you mean 'split'?"},
      {"graph.h.units", "3", "--set graph.h.units=3", "/graph/0 has no argument 'units'"},
      {"graph.y_hat.units", "-3", "--set graph.y_hat.units=-3", ">= 1, got -3"},
      {"graph.y_hut.units", "3", "--set graph.y_hut.units=3", "did you mean 'y_hat'?"},
      {"graph.9", "3", "--set graph.9=3", "4 items"},
      {"train.epochs.x", "3", "--set train.epochs.x=3", "has no parts"},
      {"train..x", "3", "--set train..x=3", "dots"},
      {"graph.0", "h = logcosh(x @ W)", "--set graph.0=h = logcosh(x @ W)", "graphrun help ops lists the functions"},
      {"graph.0", "h = tanhh(x @ W)", "--set graph.0=h = tanhh(x @ W)", "did you mean 'tanh'?"},
      {"train.optimizer", "{\"sgd\": {\"lr\": 0.1}", "", ""},
      {"train.optimizer", "adma", "--set train.optimizer=adma", "did you mean 'adam'?"},
      {"train.optimizer", "3", "--set train.optimizer=3", "an object with one key"},
      {"train.optimizer.adma.lr", "3", "--set train.optimizer.adma.lr=3", "did you mean 'adam'?"},
      {"train.optimizer.adam.lrr", "3", "--set train.optimizer.adam.lrr=3", "unknown key"},
      {"train.optimizer.adam", "3", "--set train.optimizer.adam=3", "an object"},
  };
  for (const Case& c : cases) {
    const std::vector<Diagnostic> found = mistakes_in(kGood, set({{c.path, c.value}}));
    ASSERT_EQ(found.size(), 1u) << c.path;
    if (c.file.empty()) continue;
    EXPECT_EQ(found[0].file, c.file);
    EXPECT_EQ(found[0].line, 0);
    EXPECT_NE((found[0].message + found[0].hint).find(c.words), std::string::npos) << to_string(found[0]);
  }
}

TEST(Overrides, NullRemoves) {
  const std::string text = replaced(kGood, R"("epochs")", R"("early_stopping": {"patience": 3}, "epochs")");
  const auto with = [&](std::vector<std::pair<std::string, std::string>> overrides) {
    return load(text, set(std::move(overrides)));
  };
  EXPECT_EQ(with({{"train.epochs", "null"}}).train.epochs, TrainSpec().epochs);
  EXPECT_EQ(with({{"train.early_stopping.patience", " null"}}).train.early_stopping->patience,
            EarlyStopping().patience);
  EXPECT_FALSE(with({{"train.early_stopping", "null"}}).train.early_stopping);
  EXPECT_EQ(
      with({{"train.early_stopping", "null"}, {"train.early_stopping.patience", "7"}}).train.early_stopping->patience,
      7);
  EXPECT_FALSE(with({{"train.lr_plateau.factor", "null"}}).train.lr_plateau);  // not there already
  EXPECT_EQ(with({{"graph.worst", "null"}, {"train.metrics", "null"}}).graph.impl().names.count("worst"), 0u);
  EXPECT_EQ(with({{"train.optimizer.adam", "null"}}).train.optimizer.name, "sgd");
  const std::vector<Diagnostic> found = mistakes_in(text, set({{"train.minimize", "null"}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, "model.missing_key");
}

TEST(Overrides, ReachTheArgumentsOfAnEntryThatIsAText) {
  const auto entry = [](const std::string& text, const std::string& key, const std::string& value) {
    json::Document document = json::parse("m.json", R"({"graph": ["z = 1", ")" + text + R"("]})");
    try {
      apply_overrides(document, {{"graph.h." + key, value}});
    } catch (const Error& error) {
      return error.diagnostics()[0].message + "; " + error.diagnostics()[0].hint;
    }
    return document.root.find("graph")->value.items[1].string;
  };
  EXPECT_EQ(entry("h = dense(x, units=8)", "units", "4"), "h = dense(x, units=4)");
  EXPECT_EQ(entry("h = dense(x,units = 8 , bias=false)", "units", "16"), "h = dense(x,units = 16 , bias=false)");
  EXPECT_EQ(entry("h = dense(x, units=8)", "activation", "relu"), "h = dense(x, units=8, activation=\"relu\")");
  EXPECT_EQ(entry("h = dense(x, units=8)", "bias", "false"), "h = dense(x, units=8, bias=false)");
  EXPECT_EQ(entry("h = dense(x, units=8, bias=false)", "bias", "null"), "h = dense(x, units=8)");
  EXPECT_EQ(entry("h = 2 * relu(dense(x, units=8))", "units", "4"), "h = 2 * relu(dense(x, units=4))");
  EXPECT_EQ(entry("h = reshape(x, shape=[-1, 4])", "shape", "[-1, 2]"), "h = reshape(x, shape=[-1, 2])");
  EXPECT_EQ(entry("h = dense(dense(x, units=8), units=2)", "units", "4"),
            "2 calls in /graph/1 take 'units'; --set graph.h='h = ...' sets the whole entry");
  EXPECT_EQ(entry("h = mean(x)", "units", "4"),
            "/graph/1 has no argument 'units'; its arguments: axis, keepdims; "
            "--set graph.h='h = ...' sets the whole entry");
  EXPECT_EQ(entry("h = x + 1", "units", "4"),
            "/graph/1 has no argument 'units'; --set graph.h='h = ...' sets the whole entry");
}

TEST(Overrides, TheOptimizerOfAnObjectiveIsChangedLikewise) {
  const std::string several = replaced(kGood, R"("minimize": "loss",)", R"("objectives": {
      "one": {"minimize": "loss", "parameters": ["W", "b"], "optimizer": {"sgd": {"lr": 0.1}}},
      "two": {"minimize": "worst", "parameters": ["y_hat"], "optimizer": {"sgd": {"lr": 0.2}}}},)");
  const std::string text = replaced(replaced(several, R"("metrics": ["mse", "worst"],)", R"("metrics": ["mse"],)"),
                                    R"("optimizer": {"sgd": {"lr": 0.1}},
    "batch")",
                                    R"("batch")");
  const auto optimizers = [&](std::vector<std::pair<std::string, std::string>> overrides) {
    std::string said;
    for (const ObjectiveSpec& one : load(text, set(std::move(overrides))).train.objectives)
      said += one.name + " " + one.optimizer.name + " " + std::to_string(one.optimizer.attributes[0].second) + "; ";
    return said;
  };
  EXPECT_EQ(optimizers({}), "one sgd 0.100000; two sgd 0.200000; ");
  EXPECT_EQ(optimizers({{"train.objectives.two.optimizer", "adam"}}), "one sgd 0.100000; two adam 0.010000; ");
  EXPECT_EQ(optimizers({{"train.objectives.two.optimizer.adam.lr", "0.5"}}), "one sgd 0.100000; two adam 0.500000; ");
  EXPECT_EQ(optimizers({{"train.objectives.one.optimizer.sgd.lr", "0.5"}}), "one sgd 0.500000; two sgd 0.200000; ");
  const std::vector<Diagnostic> found = mistakes_in(text, set({{"train.objectives.two.optimizer.adma.lr", "1"}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].hint, "did you mean 'adam'?");
}

TEST(Overrides, AnotherOptimizerTakesThePlaceOfTheFiles) {
  const auto optimizer = [](std::vector<std::pair<std::string, std::string>> overrides) {
    const OptimizerSpec spec = load(kGood, set(std::move(overrides))).train.optimizer;
    std::string text = spec.name;
    for (const auto& [name, value] : spec.attributes) text += " " + name + "=" + std::to_string(value);
    return text;
  };
  const std::string kUsual = "adam lr=0.010000", kMine = "adam lr=0.500000";
  EXPECT_EQ(optimizer({{"train.optimizer", "adam"}}), kUsual);
  EXPECT_EQ(optimizer({{"train.optimizer", "\"adam\""}}), kUsual);
  EXPECT_EQ(optimizer({{"train.optimizer", "adam"}, {"train.optimizer.adam.lr", "0.5"}}), kMine);
  EXPECT_EQ(optimizer({{"train.optimizer.adam.lr", "0.5"}, {"train.optimizer", "adam"}}), kMine);
  EXPECT_EQ(optimizer({{"train.optimizer.adam.lr", "0.5"}}), kMine);
  EXPECT_EQ(optimizer({{"train.optimizer.adam", "{\"lr\": 0.5}"}}), kMine);
  EXPECT_EQ(optimizer({{"train.optimizer.sgd.lr", "3"}, {"train.optimizer.adam.lr", "0.5"}}), kMine);
  EXPECT_EQ(optimizer({{"train.optimizer", "rmsprop"}, {"train.optimizer.adam.beta1", "0.5"}}),
            kUsual + " beta1=0.500000");
}

TEST(Overrides, ErrorsInsideOfTextsAreShown) {
  const std::vector<Diagnostic> found = mistakes_in(kGood, set({{"graph.0", "h = tanhh(x @ W)"}}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(to_string(found[0]),
            "--set graph.0=h = tanhh(x @ W): /graph/0: there is no function named tanhh\n    h = tanhh(x @ W)\n"
            "        ^\n    hint: did you mean 'tanh'?");
}

TEST(ShippedModels, Load) {
  const std::string models = source_folder() + "/models/";
  const Model model = load_model(models + "xor.json");
  EXPECT_EQ(model.graph.batch(), 4);
  EXPECT_EQ(model.graph.type(model.graph.find("h.W")).shape, Shape({2, 4}));
}

}  // namespace
}  // namespace graphrun
