// Contract of the command line: streams, exit codes, JSON schemas and error messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "fixture.h"

namespace graphrun::testing {
namespace {

// The commands of --help, and those that only its last line names.
std::vector<std::string> commands(const std::string& help) {
  std::vector<std::string> names = {"completion", "help"};
  bool in_group = false;
  for (const std::string& line : lines(help.substr(0, help.find("Common flags:")))) {
    if (in_group && line.starts_with("  ")) names.push_back(line.substr(2, line.find(' ', 2) - 2));
    in_group = in_group || line.ends_with(':');
  }
  return names;
}

TEST_F(Cli, HelpHasFourGroupsOfCommandsIn40Lines) {
  const Outcome help = graphrun({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_LE(lines(help.out).size(), 40u) << help.out;
  for (const std::string& line : lines(help.out)) EXPECT_LE(line.size(), 100u) << line;
  std::vector<std::string> titles;
  for (const std::string& line : lines(help.out)) {
    if (line.ends_with(':')) titles.push_back(line);
  }
  EXPECT_EQ(titles, (std::vector<std::string>{"Train:", "Inspect:", "Runs:", "Export:", "Common flags:", "Examples:"}));
  for (const char* part : {"train", "plan", "verify", "--executor", "--set", "--json", "COMMAND --help", "completion"})
    EXPECT_TRUE(has(help.out, part)) << part;
  EXPECT_EQ(graphrun({model_, "-h"}).out, help.out);
}

TEST_F(Cli, HelpOfTopicsNamesVariablesAndExitCodes) {
  const Outcome help = graphrun({"help"});
  EXPECT_EQ(help.code, 0);
  for (const std::string& line : lines(help.out)) EXPECT_LE(line.size(), 110u) << line;
  for (const char* part : {"optimizers", "adam", "GRAPHRUN_DATA", "NO_COLOR", "CUDA_VISIBLE_DEVICES",
                           "Exit codes:", "130", "--flag=value"})
    EXPECT_TRUE(has(help.out, part)) << part;
}

// The names of flags in a help text, each with its line.
std::map<std::string, std::string> flags_in(const std::string& help) {
  std::map<std::string, std::string> found;
  for (const std::string& line : lines(help)) {
    if (!line.starts_with("  -")) continue;
    const std::size_t at = line.find("--");
    found.emplace(line.substr(at, line.find_first_of(" [", at) - at), line);
  }
  return found;
}

// A name with two texts would have two meanings. Between verbs, only the default may differ, or the flag be required.
TEST_F(Cli, EveryFlagHasOneMeaning) {
  std::map<std::string, std::string> all;
  std::vector<std::string> pages = commands(graphrun({"--help"}).out);
  pages.insert(pages.end(), {"execution", "logs"});
  for (const std::string& page : pages) {
    for (const auto& [name, line] : flags_in(graphrun({"help", page}).out)) {
      const auto without_default = [](const std::string& text) {
        return text.substr(0, std::min(text.find(" (default: "), text.find(" (required)")));
      };
      EXPECT_EQ(without_default(all.emplace(name, line).first->second), without_default(line)) << page;
      EXPECT_FALSE(has(line, "{") || has(line, "}")) << line;
    }
  }
  EXPECT_GT(all.size(), 90u);
  for (const auto& [name, line] : all) {
    ASSERT_GT(line.size(), 26u) << line;  // the column of the texts
    const std::string text = line.substr(26);
    EXPECT_LE(text.size(), 84u) << name;
    EXPECT_FALSE(std::isupper(static_cast<unsigned char>(text[0]))) << name;
  }
}

TEST_F(Cli, FormerSpellingsOfFlagsStillWorkAndAreHidden) {
  const std::string table = file("points.csv", "x,y\n1,1.5\n2,2.5\n3,3.7\n4,4.1\n5,5.9\n6,6.2\n");
  const Outcome init = graphrun({"init", table, "--label", "y"});
  EXPECT_EQ(init.code, 0) << init.err;
  EXPECT_EQ(graphrun({"init", table, "--target", "y"}).out, init.out);
  EXPECT_EQ(graphrun({"--target=y", "init", table}).out, init.out);
  const std::string log = file("log.csv", "epoch,loss\n1,100\n2,10\n3,1\n");
  const std::string plot = graphrun({"plot", log, "--log-scale", "y"}).out;
  EXPECT_EQ(graphrun({"plot", log, "--log", "y"}).out, plot);
  EXPECT_EQ(graphrun({"--log=y", "plot", log}).out, plot);
  EXPECT_EQ(graphrun({model_, "-q", "--no-forensics"}).code, 0);
  expect_rejected(graphrun({"plot", log, "--log=z"}), {"--log-scale must be x, y or xy, got 'z'"});
  expect_rejected(graphrun({"plot", log, "--log"}), {"--log-scale needs a value: --log-scale AXES"});

  EXPECT_FALSE(has(graphrun({"init", "--help"}).out, "--target"));
  EXPECT_FALSE(has(graphrun({"plot", "--help"}).out, "\n  --log "));
  std::string all = graphrun({"help", "--man"}).out + graphrun({"train", "--help"}).out;
  for (const char* shell : {"bash", "zsh", "fish"}) all += graphrun({"completion", shell}).out;
  EXPECT_FALSE(has(all, "forensics"));
}

TEST_F(Cli, EveryVerbHasHelpOfItsOwn) {
  ASSERT_GE(commands(graphrun({"--help"}).out).size(), 21u);
  for (const std::string& verb : commands(graphrun({"--help"}).out)) {
    SCOPED_TRACE(verb);
    const Outcome help = graphrun({verb, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_EQ(help.err, "");
    EXPECT_LT(help.out.find("\nOutput:"), help.out.find("\nExecution:"));
    for (const char* part : {"Usage: graphrun ", "Examples:", "--diagnostics", "See also: graphrun help"})
      EXPECT_TRUE(has(help.out, part)) << part;
    EXPECT_EQ(help.out.rfind("graphrun " + verb, 0), 0u);
    EXPECT_EQ(graphrun({"help", verb}).out, help.out);
    for (const std::string& line : lines(help.out)) EXPECT_LE(line.size(), 110u) << line;
  }
  EXPECT_FALSE(has(graphrun({"plan", "--help"}).out, "--losses"));  // a flag of train
  const std::string eval = graphrun({"eval", "--help"}).out;
  EXPECT_TRUE(has(eval, "--threads") && has(eval, "graphrun help execution") && !has(eval, "--tiling")) << eval;
  EXPECT_TRUE(has(graphrun({"init", "--help"}).out, "output file; with --ensemble, a folder (default: stdout)\n"));
  EXPECT_TRUE(has(graphrun({"sweep", "--help"}).out, "(default: MODEL-sweep)\n"));
  const std::string train = graphrun({"train", "--help"}).out;
  EXPECT_TRUE(has(train, "--log FILE") && has(train, "graphrun help logs") && !has(train, "--losses")) << train;
  expect_rejected(graphrun({"help", "pln"}), {"did you mean plan?"});
  expect_rejected(graphrun({"help", "plan", "more"}), {"'more'"});
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
  expect_rejected(graphrun({model_}, {.environment = {"GRAPHRUN_THREADS=many"}}), {"GRAPHRUN_THREADS", "'many'"});
  expect_rejected(graphrun({model_}, {.environment = {"GRAPHRUN_ISA=sse"}}), {"GRAPHRUN_ISA", "'sse'"});
  expect_rejected(graphrun({model_, "--isa=sse"}), {"'sse'"});
  EXPECT_EQ(graphrun({model_, "--isa=plain"}, {.environment = {"GRAPHRUN_ISA=sse"}}).code, 0);
  const std::string help = graphrun({"help"}).out;
  for (const char* variable : {"GRAPHRUN_EXECUTOR", "GRAPHRUN_THREADS", "GRAPHRUN_ISA", "GRAPHRUN_DATA"})
    EXPECT_TRUE(has(help, variable)) << variable;
}

TEST_F(Cli, JitIsPreferredRequiredOrOff) {
  for (const char* verb : {"train", "plan", "verify", "bench"}) {
    expect_rejected(graphrun({verb, model_, "--jit=maybe"}), {"--jit", "must be prefer, require or off, got 'maybe'"});
    expect_rejected(graphrun({verb, model_, "--jit=require"}),
                    {"the executor cpu compiles no kernels for whole steps", "--executor=cuda does"});
  }
  const std::string plan = graphrun({"plan", model_, "--json"}).out;
  for (const char* jit : {"--jit=prefer", "--jit=off"}) EXPECT_EQ(graphrun({"plan", model_, "--json", jit}).out, plan);
  expect_rejected(graphrun({"eval", model_, "--jit=on"}), {"must be prefer, require or off, got 'on'"});
  expect_rejected(graphrun({"show", model_, "--jit=off"}), {"--jit"});

  const Json gpu = Json::parse(graphrun({"plan", model_, "--json", "--executor=cuda", "--jit=off"}).out);
  bool said = false;
  for (const Json& note : gpu["fusion"]["notes"]) said = said || has(note.get<std::string>(), "are not wanted as one");
  EXPECT_TRUE(said) << gpu["fusion"]["notes"];
  for (const Json& region : gpu["fusion"]["regions"]) EXPECT_GT(region["chains"], 0) << region;
}

TEST_F(Cli, ATilingIsOneOfThoseThatAPlanLists) {
  expect_rejected(graphrun({"plan", model_, "--tiling=warps"}), {"there is no tiling 'warps'", "warp:512x2x66"});
  expect_rejected(graphrun({"plan", model_, "--tiling=warp:512"}), {"there is no tiling 'warp:512'"});
  expect_rejected(graphrun({"plan", model_, "--tiling=warp"}), {"no region of the model is tiled for a GPU"});
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

TEST_F(Cli, ErrorsOfUsageExitWithTwo) {
  expect_rejected(graphrun({}), {"no model file", "--help"});
  expect_rejected(graphrun({"train"}), {"train needs a model file"});
  expect_rejected(graphrun({"--epoch=3", model_}), {"--epoch", "did you mean --epochs?"});
  expect_rejected(graphrun({model_, "-x"}), {"no flag -x"});
  expect_rejected(graphrun({model_, "--executor"}), {"--executor"});
  expect_rejected(graphrun({"--executor=", model_}), {"--executor= has no value"});
  expect_rejected(graphrun({model_, "--diagnostics=xml"}), {"--diagnostics", "text or json"});
  expect_rejected(graphrun({model_, "--quiet", "-v"}), {"--quiet"});
  expect_rejected(graphrun({model_, model_}), {"one model file at a time"});
  expect_rejected(graphrun({model_, "--resume", "ck/last.safetensors"}), {"--resume=ck/last.safetensors resumes from"});
  expect_rejected(graphrun({"show", model_, "h"}), {"graphrun show MODEL.json --values h"});
  expect_rejected(graphrun({"predict", model_, "1.npz", "2.npz", "new.csv"}), {"weights files follow --weights"});
  expect_rejected(graphrun({"eval", model_, "--weights", "1.npz", "2.npz"}), {"eval takes one weights file"});
  expect_rejected(graphrun({"predict", model_, model_, "--weights", folder_.string()}), {"is a folder", "/*.npz"});
  expect_rejected(graphrun({"studio", file("data.csv", "x,y\n")}), {"data.csv --label COLUMN -o model.json writes"});
  expect_rejected(graphrun({model_, "--set", "epochs"}), {"PATH=VALUE", "'epochs'"});
  expect_rejected(graphrun({model_, "--set", "=1"}), {"PATH=VALUE"});
  expect_rejected(graphrun({model_, "--program"}), {"--program goes with plan"});
  expect_rejected(graphrun({"plan", model_, "--losses=x"}), {"--losses goes with train"});
  expect_rejected(graphrun({"plan", model_, "--program", "--json"}), {"--program", "--json"});
  expect_rejected(graphrun({model_, "--losses", (folder_ / "none" / "x").string()}), {"cannot write"});
}

TEST_F(Cli, ABareWordNearAVerbIsAMisspeltVerb) {
  expect_rejected(graphrun({"trian", model_}), {"no command and no file is called 'trian'", "did you mean train?"});
  expect_rejected(graphrun({"pln"}), {"'pln'", "did you mean plan?"});
  expect_rejected(graphrun({"optimise", model_}), {"'optimise'", "the commands are train, eval"});
  expect_rejected(graphrun({"missing.json"}), {"no such file: 'missing.json'"});
  expect_rejected(graphrun({(folder_ / "lime.json").string()}), {"lime.json'", "did you mean", "line.json?"});
  expect_rejected(graphrun({file("data.csv", "x,y\n")}), {"data.csv' is a file of data, not a model file"});
  expect_rejected(graphrun({"predict", file("data.csv", "x,y\n"), model_}), {"is a file of data", "MODEL.json DATA"});
  expect_rejected(graphrun({model_, "--executor=gpu"}), {"did you mean 'cuda'?"});
  expect_rejected(graphrun({model_, "--executor=libmine.so"}), {"a path holds a '/': ./libmine.so"});
  expect_rejected(graphrun({"train", "pln"}), {"no such file: 'pln'"});
  expect_rejected(graphrun({"./trian"}), {"no such file: './trian'"});
  expect_rejected(graphrun({folder_.string()}), {"is a folder"});
}

TEST_F(Cli, AWrongModelExitsWithTwoAndShowsThePlace) {
  const std::string broken = file("broken.json", "{\"format\": 1,\n  oops}\n");
  expect_rejected(graphrun({broken}), {"broken.json:2:"});
  expect_rejected(graphrun({"plan", broken}), {"broken.json:2:"});
  expect_rejected(graphrun({model_, "--set", "train.epoch=3"}), {"epoch"});
  expect_rejected(graphrun({model_, "--batch=99"}), {"99"});
}

TEST_F(Cli, ASettingThatIsNoFlagIsNamedWithItsPath) {
  expect_rejected(graphrun({model_, "--lr", "0.1"}),
                  {"no flag --lr", "did you mean --set train.optimizer.sgd.lr=VALUE?"});
  expect_rejected(graphrun({"train", "--learning-rate=0.1", model_}), {"--set train.optimizer.sgd.lr=VALUE"});
  expect_rejected(graphrun({model_, "--momentum", "0.9"}), {"--set train.optimizer.momentum.momentum=VALUE"});
  expect_rejected(graphrun({model_, "--batch-size", "2"}), {"--set train.batch=VALUE"});
  expect_rejected(graphrun({model_, "--units=3"}), {"--set graph.p.units=VALUE"});
  expect_rejected(graphrun({model_, "--epoch=3"}), {"did you mean --epochs?"});
  expect_rejected(graphrun({"--lr", "0.1"}), {"no flag --lr"});
}

TEST_F(Cli, AWrongMathIsAnsweredWithTheNearest) {
  expect_rejected(graphrun({model_, "--math=fats"}), {"train/math", "\"exact\" or \"fast\"", "did you mean \"fast\"?"});
  expect_rejected(graphrun({"verify", model_, "--math=exakt"}), {"did you mean \"exact\"?"});
  EXPECT_EQ(Json::parse(graphrun({model_, "--math=exact", "--json"}).out)["weights_hash"],
            Json::parse(graphrun({model_, "--json"}).out)["weights_hash"]);  // cpu has one way only
}

TEST_F(Cli, AnUnknownExecutorIsAnsweredWithTheNearest) {
  expect_rejected(graphrun({model_, "--executor=cpv"}), {"cpv", "cpu"});
  expect_rejected(graphrun({"plan", model_, "--target=h20"}), {"h20", "h200"});
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
        "schema",      "model",       "executor",    "math",   "seed",  "settings", "train",
        "validation",  "test",        "scores",      "epochs", "steps", "seconds",  "steps_per_second",
        "interrupted", "arena_bytes", "weights_hash"};
    EXPECT_EQ(keys(result), expected);
    EXPECT_EQ(result["schema"], 2);
    EXPECT_EQ(result["model"], "line");
    EXPECT_EQ(result["executor"], "cpu");
    EXPECT_EQ(result["seed"], 1);
    EXPECT_EQ(result["settings"]["optimizer"]["sgd"]["lr"], 0.05);
    EXPECT_EQ(result["settings"]["shuffle"], false) << "a default";
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

// Plug-ins in a folder that only the user can write are found by name; rejected ones are reported.
TEST_F(Cli, PluginsOfAFolderAreKnownByName) {
  const std::filesystem::path plugins = folder_ / "plugins", library = plugins / "libgraphrun_mine.so";
  std::filesystem::create_directory(plugins);
  std::filesystem::permissions(plugins, std::filesystem::perms::owner_all);
  std::filesystem::copy_file(GRAPHRUN_MATMUL_PLUGIN, library);
  std::filesystem::permissions(library, std::filesystem::perms::owner_all);
  const std::string flag = "--plugin-path=" + plugins.string();
  const ProcessOptions variable = {.environment = {"GRAPHRUN_PLUGIN_PATH=" + plugins.string()}};

  EXPECT_TRUE(has(graphrun({"devices", flag}).out, "mine      a plug-in\n")) << graphrun({"devices", flag}).out;
  EXPECT_TRUE(has(graphrun({"devices"}, variable).out, "mine "));
  EXPECT_FALSE(has(graphrun({"devices"}).out, "mine "));
  const Json by_name = Json::parse(graphrun({model_, "--executor=mine", flag, "--json"}).out);
  const Json by_path = Json::parse(graphrun({model_, "--executor=" + library.string(), "--json"}).out);
  EXPECT_EQ(by_name["executor"], "matmul_plugin");
  EXPECT_EQ(by_name["weights_hash"], by_path["weights_hash"]);
  EXPECT_EQ(graphrun({model_}, {.environment = {variable.environment[0], "GRAPHRUN_EXECUTOR=mine"}}).code, 0);
  expect_rejected(graphrun({model_, "--executor=mine"}), {"unknown executor 'mine'"});
  expect_rejected(graphrun({model_, "--executor=" + library.string() + ":0", "--losses=" + library.string()}),
                  {"executor"});

  std::filesystem::permissions(plugins, std::filesystem::perms::all);
  const Outcome open = graphrun({"devices", flag});
  EXPECT_EQ(open.code, 0);
  EXPECT_TRUE(has(open.out, plugins.string() + " missing: not used: others may write it")) << open.out;
  EXPECT_EQ(Json::parse(graphrun({"devices", flag, "--json"}).out)["missing"].back()["executor"], plugins.string());
  expect_rejected(graphrun({model_, "--executor=mine", flag}), {"unknown executor 'mine'", "others may write it"});
}

// A variable may have been set by anybody: it chooses among what is built in.
TEST_F(Cli, AVariableBringsNoCode) {
  for (const char* value : {GRAPHRUN_MISBEHAVING_EXECUTOR, "./x.so", "/"}) {
    const ProcessOptions options = {.environment = {std::string("GRAPHRUN_EXECUTOR=") + value}};
    expect_rejected(graphrun({model_}, options), {"GRAPHRUN_EXECUTOR", value, "--executor"});
    expect_rejected(graphrun({"plan", model_}, options), {"GRAPHRUN_EXECUTOR"});
    EXPECT_EQ(graphrun({model_, "--executor=cpu"}, options).code, 0);
  }
  EXPECT_EQ(graphrun({model_, "--executor=" GRAPHRUN_MISBEHAVING_EXECUTOR}).code, 0);
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
  expect_rejected(graphrun({path}), {"line.csv"});
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

TEST_F(Cli, CostFactorsFromTheEnvironmentAreChecked) {
  for (const char* factors : {"1 2 3", "1 2 x"}) {
    const Outcome outcome =
        graphrun({"plan", model_, "--executor=cuda"}, {.environment = {std::string("GRAPHRUN_GPU_COSTS=") + factors}});
    EXPECT_EQ(outcome.code, 2) << factors << outcome.out;
    EXPECT_TRUE(has(outcome.err, "GRAPHRUN_GPU_COSTS: expected")) << outcome.err;
  }
  std::string factors;
  for (int i = 0; i < 48; ++i) factors += "1 ";
  EXPECT_EQ(graphrun({"plan", model_, "--executor=cuda"}, {.environment = {"GRAPHRUN_GPU_COSTS=" + factors}}).code, 0);
}

TEST_F(Cli, ALossThatIsNotFiniteFailsTheRun) {
  const Outcome outcome = graphrun({model_, "--json", "--set", "train.optimizer.sgd.lr=1e30"});
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_TRUE(has(outcome.err, "the loss is inf")) << outcome.err;
  EXPECT_FALSE(has(outcome.out, "nan"));
}

TEST_F(Cli, AScheduleThatIsZeroBeforeTheEndIsWarnedOf) {
  const auto told = [&](const std::string& lr, const std::string& epochs) {
    return graphrun({model_, "--epochs", epochs, "--set", "train.optimizer.sgd.lr=" + lr}).err;
  };
  const std::string cosine = R"({"cosine": {"from": 0.05, "to": 0, "epochs": 8, "warmup": 2}})";
  EXPECT_FALSE(has(told(cosine, "10"), "schedule"));
  EXPECT_TRUE(has(told(cosine, "30"),
                  "the schedule 'cosine' ends at a learning rate of 0 after 10 of 30 epochs: the last "
                  "20 train nothing; give it \"epochs\": 28, or train 10 with --epochs"));
  EXPECT_FALSE(has(told(R"({"linear": {"from": 0.05, "to": 0.01, "epochs": 8}})", "30"), "schedule"));
  EXPECT_TRUE(
      has(told(R"({"piecewise": {"values": [0.05, 0.01, 0], "steps": [5, 10]}})", "30"), "after 10 of 30 steps"));
  EXPECT_FALSE(has(told(R"({"piecewise": {"values": [0.05, 0, 0.01], "steps": [5, 10]}})", "30"), "schedule"));
}

TEST_F(Cli, ABatchNormOfOneRowIsWarnedOf) {
  const auto told = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {model_, "--set",
                                 R"json(graph=["n = batch_norm(x)", "p = dense(n, units=1)",)json"
                                 R"json("loss = mean((p - y) ^ 2)"])json"});
    return graphrun(words).err;
  };
  EXPECT_FALSE(has(told({}), "batch_norm"));
  EXPECT_TRUE(has(told({"--batch", "3"}), "batch_norm 'n' makes zeros of a batch of one row, and the last batch"));
  EXPECT_FALSE(has(told({"--batch", "3", "--set", "train.last_batch=drop"}), "batch_norm"));
  EXPECT_TRUE(has(told({"--batch", "1"}), "every batch has one row"));
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

TEST_F(Cli, VerboseTellsOfThePlan) {
  const Outcome outcome = graphrun({model_, "-v"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"train split: 4 rows", "arena:", "phase train:"}) {
    EXPECT_TRUE(has(outcome.err, part)) << part;
  }
}

TEST_F(Cli, ResultsTellOfRegions) {
  const auto lines_of = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {model_, "-v"});
    const Outcome outcome = graphrun(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> found;
    for (const std::string& line : lines(outcome.out)) {
      if (line.starts_with("regions ") || (!found.empty() && line.starts_with("   ")))
        found.push_back(line.substr(line.find_first_not_of(' ', line.find(' '))));
    }
    return found;
  };
  const Json plan = Json::parse(graphrun({"plan", model_, "--json"}).out);
  const std::vector<std::string> found = lines_of({});
  ASSERT_EQ(found.size(), 3u);  // predict has two steps, and nothing to keep
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Json& phase = plan["phases"][i];  // each phase of this model is one region
    const std::string steps = std::to_string(phase["nodes"].size());
    const std::string begin = phase["name"].get<std::string>() + ": " + steps + " of " + steps + " steps, ";
    EXPECT_TRUE(found[i].starts_with(begin)) << found[i] << "\n" << begin;
    EXPECT_TRUE(found[i].ends_with(" bytes never reach the arena")) << found[i];
  }
  EXPECT_FALSE(has(graphrun({model_, "--quiet"}).out, "regions"));

  EXPECT_EQ(lines_of({"--executor=ref"}), std::vector<std::string>{"none"});
  EXPECT_TRUE(has(graphrun({model_, "-v", "--executor=ref"}).err, "ref: it runs steps one by one"));
  EXPECT_TRUE(lines_of({"--no-fuse"}).empty());
  EXPECT_EQ(lines_of({"--executor=" GRAPHRUN_MISBEHAVING_EXECUTOR}).size(), 1u);  // not known by name
}

// The plug-in notes each step that it is asked about, which is once a compilation.
TEST_F(Cli, ATrainingCompilesOnce) {
  const std::string executor = "--executor=" GRAPHRUN_MISBEHAVING_EXECUTOR;
  std::size_t steps = 0;
  const Json plan = Json::parse(graphrun({"plan", model_, "--json", executor}).out);
  for (const Json& phase : plan["phases"]) steps += phase["nodes"].size();
  ASSERT_GT(steps, 0u);
  for (const char* flag : {"--json", "--quiet", "-v"}) {
    const std::string asked = file("asked", "");
    const Outcome outcome =
        graphrun({model_, flag, executor}, {.environment = {"MISBEHAVING_EXECUTOR_ASKED=" + asked}});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(std::filesystem::file_size(asked), steps) << flag;
  }
}

}  // namespace
}  // namespace graphrun::testing
