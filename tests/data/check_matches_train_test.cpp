// check_model() next to a training of no epochs, over mutated model files whose data are there: what check rejects
// train rejects, and what train rejects for a reason in the file alone check rejects. Only codes of data may differ.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "data_fixture.h"
#include "graphrun/session.h"
#include "graphrun/show.h"
#include "support/rounds.h"

namespace graphrun {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kBases[] = {
    R"js({"format": 1,
  "data": {"source": {"csv": "a.csv", "y": "y"}, "split": [0.6, 0.2, 0.2], "transform": {"x": ["standardize"]}},
  "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
  "parameters": {"w": {"shape": [2, 1], "init": "zeros"}},
  "graph": ["p = x @ w", "loss = mse(p, y)", "worst = max(abs(p - y))"], "outputs": {"p": "y"},
  "train": {"minimize": "loss", "metrics": ["rmse", "worst"], "optimizer": {"adam": {"lr": 0.1}}, "epochs": 2, "batch": 4,
            "early_stopping": {"monitor": "rmse", "patience": 2}, "lr_plateau": {"factor": 0.5, "patience": 1}}})js",
    R"js({"format": 1,
  "data": {"train": {"csv": "a.csv", "y": "y"}, "validation": {"csv": "b.csv", "y": "y"}, "test": {"csv": "b.csv", "y": "y"}},
  "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
  "graph": [{"name": "h", "op": "dense", "inputs": ["x"], "units": 3, "activation": "relu"},
            {"name": "p", "op": "dense", "inputs": ["h"], "units": 1}, "loss = mean(square(p - y))"],
  "outputs": {"p": "y"},
  "train": {"minimize": "loss", "metrics": ["r2"], "optimizer": {"sgd": {"lr": {"cosine": {"from": 0.1, "to": 0, "epochs": 4}}}},
            "batch": "all", "early_stopping": {"patience": 2}}})js",
    R"js({"format": 1,
  "data": {"source": {"csv": "c.csv", "y": "word"}, "folds": {"k": 3, "fold": 0}, "transform": {"word": ["classes"]}},
  "inputs": {"x": ["batch", 2], "y": {"shape": ["batch"], "dtype": "i32"}},
  "graph": [{"name": "z", "op": "dense", "inputs": ["x"], "units": 3}, "loss = mean(softmax_cross_entropy(z, y))"],
  "outputs": {"z": "y"},
  "train": {"minimize": "loss", "metrics": ["accuracy"], "optimizer": {"momentum": {"lr": 0.1}}, "batch": 5, "last_batch": "drop"}})js",
    R"js({"format": 1,
  "data": {"train": {"inline": {"x": [[1, 2], [3, 4], [5, 6]], "y": [[1], [2], [3]]}}, "validation": {"csv": "b.csv", "y": "y"}},
  "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
  "parameters": {"w": {"shape": [2, 1], "init": {"normal": 0.1}}},
  "graph": ["p = x @ w", "loss = mse(p, y)"], "outputs": {"p": "y"},
  "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "early_stopping": {}, "clip_norm": 1}})js"};

// Values that keys of a model have, and some that none has.
constexpr const char* kValues[] = {"0",
                                   "1",
                                   "-1",
                                   "0.5",
                                   "3",
                                   "1000000",
                                   "true",
                                   "null",
                                   "\"loss\"",
                                   "\"rmse\"",
                                   "\"p\"",
                                   "\"all\"",
                                   "\"max\"",
                                   "\"drop\"",
                                   "\"y\"",
                                   "\"x\"",
                                   "[]",
                                   "{}",
                                   "[1, 0, 0]",
                                   "[0.8, 0.2, 0]",
                                   "[0.5, 0, 0.5]",
                                   "[\"batch\", 2]",
                                   "[\"batch\"]",
                                   "[\"rmse\"]",
                                   "[\"accuracy\"]",
                                   "{\"k\": 4, \"fold\": 1}",
                                   "{\"patience\": 1}",
                                   "{\"monitor\": \"worst\", \"mode\": \"min\"}",
                                   "{\"csv\": \"a.csv\", \"y\": \"y\"}",
                                   "{\"csv\": \"a.csv\", \"y\": \"y\", \"range\": [0, 12]}",
                                   "{\"adam\": {\"lr\": 0.1}}",
                                   "{\"sgd\": {\"lr\": 0.1}}",
                                   "\"q = p * 2\"",
                                   "\"p = x\""};
// Keys, and values that they may have.
constexpr std::pair<const char*, const char*> kSettings[] = {
    {"/data/split",
     "[[0.8, 0.2, 0], [1, 0, 0], [0.5, 0, 0.5], [0.6, 0.2, 0.2], [0, 0.5, 0.5], [0.7, 0.3], [0.01, 0.98, 0.01]]"},
    {"/data/folds",
     R"([{"k": 4, "fold": 1}, {"k": 3, "fold": 3}, {"k": 1, "fold": 0}, {"k": 30, "fold": 0}, {"k": 2}])"},
    {"/data/train",
     R"([{"csv": "a.csv", "y": "y"}, {"csv": "a.csv", "y": "y", "range": [0, 12]}, {"csv": "c.csv", "y": "word"}])"},
    {"/data/validation",
     R"([{"csv": "b.csv", "y": "y"}, {"csv": "b.csv", "y": "b"}, {"csv": "b.csv", "y": "y", "range": [3, 4]}])"},
    {"/data/test", R"([{"csv": "b.csv", "y": "y"}, {"csv": "c.csv", "y": "word"}, {"csv": "b.csv"}])"},
    {"/data/stratify", R"(["y", "x", "word", true, "nothing"])"},
    {"/data/split_seed", "[0, 7, -1, 0.5]"},
    {"/data/source/range", "[[0, 12], [0, 1], [5, 5], [0, 100]]"},
    {"/data/train/range", "[[0, 12], [0, 1], [5, 5], [0, 100]]"},
    {"/data/source/rows", "[20, 12, 0]"},
    {"/data/train/rows", "[20, 3, 0]"},
    {"/data/source/y", R"(["b", ["y"], ["a", "b"], [], ["y", 3], "log(y + 1) * 2"])"},
    {"/data/train/x", R"(["a", ["a", "b"], [], ["a", null], "a + b"])"},
    {"/data/source/missing", R"(["drop", "mean", "none", 0, {"a": "median"}, {"a": "nothing"}, {"value": 1}])"},
    {"/data/source/header", R"([true, "yes"])"},
    {"/data/train/delimiter", R"([",", ", ", 5])"},
    {"/data/train",
     R"([{"npy": {"x": "x.npy"}}, {"npz": 5}, {"idx": {}}, {"json": null}, {"records": "a.csv", "na": 3}])"},
    {"/data/transform/x",
     R"([["standardize"], ["minmax"], ["log1p", "standardize"], ["one_hot"], [{"scale": 2}], []])"},
    {"/data/transform/y", R"([["standardize"], ["classes"], ["one_hot"], ["log"]])"},
    {"/inputs/z", R"([["batch", 2], [3], []])"},
    {"/inputs/x",
     R"([["batch", 2], ["batch", 3], ["batch"], ["batch", "n"], {"shape": ["batch", 2], "dtype": "i32"}])"},
    {"/inputs/y", R"([["batch"], ["batch", 1], ["batch", 3], {"shape": ["batch"], "dtype": "i32"}])"},
    {"/constants/k", "[1, [1, 2], 1e30]"},
    {"/outputs", R"([{"p": "y"}, {"z": "y"}, {"h": "y"}, {"loss": "y"}, ["p"], {}])"},
    {"/parameters/w",
     R"([{"shape": [2, 1], "init": {"normal": 1}}, {"shape": [2, 3], "init": "zeros"}, {"shape": [2, 1], "trainable": false}])"},
    {"/graph/-", R"js(["q = p * 2", "worst = max(abs(p - y))", "each = p - y", "rmse = mean(p)", "p = x"])js"},
    {"/train/minimize", R"(["loss", "p", "worst", "y", "rmse"])"},
    {"/train/metrics", R"([["rmse"], ["accuracy"], ["r2", "mae"], ["worst"], ["auc"], ["p"], ["rmse", "rmse"], []])"},
    {"/train/optimizer",
     R"([{"adam": {"lr": 0.1}}, {"sgd": {"lr": -1}}, {"adamw": {"lr": 0}}, {"momentum": {}}, "adam"])"},
    {"/train/early_stopping",
     R"([{"patience": 1}, {}, {"monitor": "worst"}, {"monitor": "worst", "mode": "min"}, {"monitor": "accuracy"}])"},
    {"/train/early_stopping/monitor", R"(["loss", "rmse", "worst", "accuracy", "r2", "p", "validation.loss"])"},
    {"/train/early_stopping/mode", R"(["min", "max", "auto"])"},
    {"/train/early_stopping/min_delta", "[0, 0.1, -1]"},
    {"/train/lr_plateau", R"([{"factor": 0.5, "patience": 1}, {}, {"factor": 2}, {"monitor": "r2"}])"},
    {"/train/lr_plateau/monitor", R"(["loss", "rmse", "worst", "accuracy", "r2", "p"])"},
    {"/train/batch", R"([1, 4, 0, 1000000, "all", "max"])"},
    {"/train/last_batch", R"(["drop", "keep"])"},
    {"/train/evaluate_every", "[1, 3, 0]"},
    {"/train/evaluate_every_steps", "[1, 3, 0]"},
    {"/train/clip_norm", "[1, 0, -1]"},
    {"/train/epochs", "[0, 1, -1]"},
    {"/train/seed", "[0, 5, -1]"},
    {"/train/shuffle", "[true, false]"},
    {"/train/max_memory", R"(["1 MiB", "1 KiB", 1000000])"},
    {"/train/precision", R"(["bf16", "f32", "f16"])"},
    {"/train/objectives",
     R"([{"a": {"minimize": "loss", "parameters": ["w"], "optimizer": {"sgd": {"lr": 0.1}}}}, {}])"},
    {"/states", R"([{"s": {"shape": [1], "init": "zeros"}}, {}])"}};

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

  std::size_t below(std::size_t count) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state_ >> 33) % count;
  }

  Json mutant() {
    Json model = Json::parse(kBases[below(std::size(kBases))]);
    for (std::size_t i = below(4) == 0 ? 2 : 1; i > 0; --i) change(model);
    return model;
  }

 private:
  void change(Json& model) {
    if (below(2) == 0) {
      const auto& [pointer, values] = kSettings[below(std::size(kSettings))];
      const Json fitting = Json::parse(values);
      try {
        model[Json::json_pointer(pointer)] = below(8) == 0 ? any_value() : fitting[below(fitting.size())];
      } catch (const Json::exception&) {  // the path leads through a value that is not an object
      }
      return;
    }
    std::set<std::string> distinct;
    const Json flat = model.flatten();
    for (const auto& item : flat.items())
      for (Json::json_pointer at(item.key()); !at.empty(); at = at.parent_pointer()) distinct.insert(at.to_string());
    const std::vector<std::string> paths(distinct.begin(), distinct.end());
    if (paths.empty()) return;
    const Json::json_pointer at(paths[below(paths.size())]);
    Json& owner = model[at.parent_pointer()];
    if (below(4) != 0)
      model[at] = like(model[at]);
    else if (owner.is_object())
      owner.erase(at.back());
    else
      owner.erase(std::stoul(at.back()));
  }

  Json any_value() { return Json::parse(kValues[below(std::size(kValues))]); }

  // Mostly of the same type, so that many mutants are models.
  Json like(const Json& old) {
    Json value = any_value();
    for (std::size_t i = below(20); i > 0 && (value.type() != old.type() && !(value.is_number() && old.is_number()));
         --i)
      value = any_value();
    return value;
  }

  std::uint64_t state_;
};

class CheckAndTrain : public DataTest {
 protected:
  CheckAndTrain() {
    std::string numbers = "a,b,y\n", words = "a,b,word\n";
    const char* const classes[] = {"red", "green", "blue"};
    for (int i = 0; i < 20; ++i) {
      numbers += std::to_string(i) + "," + std::to_string(i % 7) + "," + std::to_string(i % 3) + "\n";
      words += std::to_string(i) + "," + std::to_string(i % 5) + "," + classes[i % 3] + "\n";
    }
    write("a.csv", numbers);
    write("b.csv", numbers);
    write("c.csv", words);
  }

  template <class F>
  static std::vector<Diagnostic> errors_of(F f) {
    try {
      f();
    } catch (const Error& error) {
      return error.diagnostics();
    }
    return {};
  }
};

TEST_F(CheckAndTrain, RejectAnArrayThatCannotBecomeClasses) {
  for (const char* labels : {"5", "[]", "[[1, 2], [3, 4]]"}) {
    write("m.json", fmt::format(R"js({{"format": 1, "data": {{"train": {{"inline": {{"x": [[1, 2], [3, 4]], "y": {}}}}},
      "transform": {{"y": ["classes"]}}}}, "inputs": {{"x": ["batch", 2], "y": {{"shape": ["batch"], "dtype": "i32"}}}},
      "graph": ["z = dense(x, units=2)", "loss = mean(softmax_cross_entropy(z, y))"], "outputs": {{"z": "y"}},
      "train": {{"minimize": "loss", "optimizer": {{"sgd": {{"lr": 0.1}}}}}}}})js",
                                labels));
    EXPECT_FALSE(errors_of([&] { check_model(path("m.json")); }).empty()) << labels;
    EXPECT_FALSE(errors_of([&] { load_model(path("m.json")); }).empty()) << labels;
  }
}

// No file has to be opened for these.
TEST_F(CheckAndTrain, CheckReadsWhatStandsBesideADataFile) {
  const auto checked = [&](const std::string& source) {
    write("m.json",
          R"js({"format": 1, "data": {"train": )js" + source + R"js(}, "inputs": {"x": ["batch", 2], "y": ["batch", 1]},
      "graph": ["p = dense(x, units=1)", "loss = mse(p, y)"], "outputs": {"p": "y"},
      "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}}})js");
    const std::vector<Diagnostic> found = errors_of([&] { check_model(path("m.json")); });
    return found.empty() ? "" : found[0].pointer + ": " + found[0].message;
  };
  EXPECT_EQ(checked(R"({"csv": "no.csv", "y": "y"})"), "");
  EXPECT_EQ(checked(R"({"csv": 3, "y": "y"})"), "/data/train/csv: must be a string, got 3");
  EXPECT_EQ(checked(R"({"csv": "no.csv", "y": null})"), "/data/train/y: must be a string, got null");
  EXPECT_EQ(checked(R"({"csv": "no.csv", "y": []})"), "/data/train/y: the list names no column");
  EXPECT_EQ(checked(R"({"csv": "no.csv"})"),
            "/data/train/csv: only one input can take the columns that are left; list those of the others");
  EXPECT_EQ(checked(R"({"csv": "no.csv", "y": "y", "header": "yes"})"),
            "/data/train/header: must be true or false, got the string \"yes\"");
  const std::string message = checked(R"({"csv": "no.csv", "y": "y", "missing": {"a": "men"}})");
  EXPECT_NE(message.find("/data/train/missing/a"), std::string::npos) << message;
  EXPECT_EQ(checked(R"({"npy": {"x": "x.npy"}})"), "/data/train/npy: no array for input 'y'; the source has x");
  EXPECT_EQ(checked(R"({"idx": {}})"), "/data/train/idx: the source has no arrays");
}

TEST_F(CheckAndTrain, AgreeOnMutants) {
  const std::uint64_t count = test::all_cases() ? 20000 : static_cast<std::uint64_t>(test::rounds(600));
  const std::uint64_t first = test::first_step_graph();
  std::size_t accepted = 0, rejected = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const std::string text = Mutator(seed).mutant().dump(1);
    write("m.json", text);
    const std::vector<Diagnostic> checked = errors_of([&] { check_model(path("m.json")); });
    const std::vector<Diagnostic> trained = errors_of([&] {
      Model model = load_model(path("m.json"));
      model.train.epochs = 0;
      Session(std::move(model)).train();
    });
    ++(checked.empty() ? accepted : rejected);
    if (!checked.empty()) {
      EXPECT_FALSE(trained.empty()) << "seed " << seed << ": only check says " << to_string(checked[0]) << "\n" << text;
    }
    for (const Diagnostic& d : trained) {
      const bool is_of_data = d.code.starts_with("data.") || d.code == "model.batch";
      EXPECT_TRUE(!checked.empty() || is_of_data)
          << "seed " << seed << ": only train says " << d.code << ": " << to_string(d) << "\n"
          << text;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted, count / 10);
  EXPECT_GT(rejected, count / 10);
}

}  // namespace
}  // namespace graphrun
