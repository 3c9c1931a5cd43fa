// check_model() next to a training of no epochs, over mutated model files whose data are there: what check rejects
// train rejects, and what train rejects for a reason in the file alone check rejects. Only codes of data may differ.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>

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
  "data": {"source": {"csv": "c.csv", "y": "word"}, "folds": {"k": 3, "fold": 0}, "transform": {"y": ["classes"]}},
  "inputs": {"x": ["batch", 2], "y": {"shape": ["batch"], "dtype": "i32"}},
  "graph": [{"name": "z", "op": "dense", "inputs": ["x"], "units": 3}, "loss = mean(softmax_cross_entropy(z, y))"],
  "outputs": {"z": "y"},
  "train": {"minimize": "loss", "metrics": ["accuracy"], "optimizer": {"momentum": {"lr": 0.1}}, "batch": 5}})js",
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
                                   "{\"csv\": \"a.csv\", \"y\": \"y\", \"rows\": [0, 12]}",
                                   "{\"adam\": {\"lr\": 0.1}}",
                                   "{\"sgd\": {\"lr\": 0.1}}",
                                   "\"q = p * 2\"",
                                   "\"p = x\""};
// Keys that are added where they belong, or anywhere.
constexpr const char* kKeys[] = {"/data/split",
                                 "/data/folds",
                                 "/data/validation",
                                 "/data/test",
                                 "/data/stratify",
                                 "/data/split_seed",
                                 "/data/source/rows",
                                 "/data/train/rows",
                                 "/train/early_stopping",
                                 "/train/early_stopping/monitor",
                                 "/train/early_stopping/mode",
                                 "/train/early_stopping/min_delta",
                                 "/train/lr_plateau",
                                 "/train/lr_plateau/monitor",
                                 "/train/metrics",
                                 "/train/batch",
                                 "/train/drop_last",
                                 "/train/evaluate_every",
                                 "/train/evaluate_every_steps",
                                 "/train/clip_norm",
                                 "/train/epochs",
                                 "/train/seed",
                                 "/train/objectives",
                                 "/states",
                                 "/constants/k",
                                 "/inputs/z"};

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

  std::size_t below(std::size_t count) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state_ >> 33) % count;
  }

  Json mutant() {
    Json model = Json::parse(kBases[below(std::size(kBases))]);
    for (std::size_t i = below(2) + 1; i > 0; --i) change(model);
    return model;
  }

 private:
  void change(Json& model) {
    const Json value = Json::parse(kValues[below(std::size(kValues))]);
    if (below(3) == 0) {
      try {
        model[Json::json_pointer(kKeys[below(std::size(kKeys))])] = value;
      } catch (const Json::exception&) {  // it leads through what is no object
      }
      return;
    }
    std::vector<std::string> paths;     // once each: a change high up leaves little of the model
    const Json flat = model.flatten();  // items() does not own it
    for (const auto& item : flat.items())
      for (Json::json_pointer at(item.key()); !at.empty(); at = at.parent_pointer()) paths.push_back(at.to_string());
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    if (paths.empty()) return;
    const Json::json_pointer at(paths[below(paths.size())]);
    Json& owner = model[at.parent_pointer()];
    if (below(2) == 0)
      model[at] = value;
    else if (owner.is_object())
      owner.erase(at.back());
    else
      owner.erase(std::stoul(at.back()));
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
  static std::vector<Diagnostic> mistakes_of(F f) {
    try {
      f();
    } catch (const Error& error) {
      return error.diagnostics();
    }
    return {};
  }
};

TEST_F(CheckAndTrain, RefuseAnArrayThatCannotBecomeClasses) {
  for (const char* labels : {"5", "[]", "[[1, 2], [3, 4]]"}) {
    write("m.json", fmt::format(R"js({{"format": 1, "data": {{"train": {{"inline": {{"x": [[1, 2], [3, 4]], "y": {}}}}},
      "transform": {{"y": ["classes"]}}}}, "inputs": {{"x": ["batch", 2], "y": {{"shape": ["batch"], "dtype": "i32"}}}},
      "graph": ["z = dense(x, units=2)", "loss = mean(softmax_cross_entropy(z, y))"], "outputs": {{"z": "y"}},
      "train": {{"minimize": "loss", "optimizer": {{"sgd": {{"lr": 0.1}}}}}}}})js",
                                labels));
    EXPECT_FALSE(mistakes_of([&] { check_model(path("m.json")); }).empty()) << labels;
    EXPECT_FALSE(mistakes_of([&] { load_model(path("m.json")); }).empty()) << labels;
  }
}

TEST_F(CheckAndTrain, AgreeOnMutants) {
  const std::uint64_t count = test::all_cases() ? 20000 : static_cast<std::uint64_t>(test::rounds(600));
  const std::uint64_t first = test::first_step_graph();
  std::size_t accepted = 0, rejected = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const std::string text = Mutator(seed).mutant().dump(1);
    write("m.json", text);
    const std::vector<Diagnostic> checked = mistakes_of([&] { check_model(path("m.json")); });
    const std::vector<Diagnostic> trained = mistakes_of([&] {
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
  EXPECT_GT(accepted, count / 20);
  EXPECT_GT(rejected, count / 10);
}

}  // namespace
}  // namespace graphrun
