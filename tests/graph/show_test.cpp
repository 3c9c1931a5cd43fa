// show_test.cpp: check, the canonical form and its fixed point, listings.
#include "graphrun/show.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "graph/frontend/builder_impl.h"
#include "graph/frontend/expressions/expression.h"
#include "graph/frontend/library/functions.h"
#include "graphrun/error.h"
#include "support/rounds.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun {
namespace {

namespace fs = std::filesystem;

LoadOptions with(std::vector<std::pair<std::string, std::string>> overrides) {
  LoadOptions options;
  options.overrides = std::move(overrides);
  return options;
}

std::vector<std::string> shipped() {
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(source_folder() + "/models")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".json" && !name.ends_with(".schema.json")) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Everything that has a default, left out wherever it may be.
const std::string kSparse = R"json({
  "format": 1,
  "$schema": "graphrun.schema.json",
  "constants": {"gain": 1.5},
  "data": {"train": {"csv": "a.csv", "rows": 10, "c": "c"}},
  "inputs": {"x": ["batch", 4], "c": {"dtype": "i32", "shape": ["batch"]}},
  "parameters": {"W": {"shape": [4, 3], "init": {"normal": 0.10}}},
  "graph": [
    "h = gain*tanh(((x @ W)) * (1/3)) ** 2",
    {"name": "s", "op": "sum", "inputs": ["h"], "axis": 1, "keepdims": true},
    {"name": "p", "op": "dense", "inputs": ["h"], "units": 5},
    "loss = mean(softmax_cross_entropy(p, c)) + 1e-3*mean(s)^2",
    "hits = mean(argmax(p, axis = -1) == c)"
  ],
  "outputs": ["p", "h"],
  "train": {"minimize": "loss", "metrics": ["hits"],
            "optimizer": {"adam": {"lr": {"cosine": {"from": 0.1, "to": 0, "epochs": 20}}}}}
})json";

TEST(Canonical, FillsInEveryDefault) {
  EXPECT_EQ(canonical_model(test::write_model(kSparse), with({{"name", "sparse"}})),
            R"json({
  "format": 1,
  "name": "sparse",
  "constants": {"gain": 1.5},
  "data": {"train": {"csv": "a.csv", "rows": 10, "c": "c"}},
  "inputs": {
    "x": {"dtype": "f32", "shape": ["batch", 4]},
    "c": {"dtype": "i32", "shape": ["batch"]}
  },
  "parameters": {"W": {"shape": [4, 3], "init": {"normal": 0.1}, "decay": true}},
  "graph": [
    "h = gain * tanh(x @ W * (1 / 3))^2",
    "s = sum(h, axis=1, keepdims=true)",
    {
      "name": "p",
      "op": "dense",
      "inputs": ["h"],
      "units": 5,
      "init": "glorot_uniform",
      "bias": "zeros"
    },
    "loss = mean(softmax_cross_entropy(p, c), axis=none, keepdims=false) + 0.001 * mean(s, axis=none, keepdims=false)^2",
    "hits = mean(argmax(p, axis=-1) == c, axis=none, keepdims=false)"
  ],
  "outputs": ["p", "h"],
  "train": {
    "minimize": "loss",
    "metrics": ["hits"],
    "optimizer": {
      "adam": {
        "lr": {"cosine": {"from": 0.1, "to": 0, "epochs": 20, "warmup": 0}},
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-08,
        "weight_decay": 0,
        "l2": 0
      }
    },
    "batch": "all",
    "last_batch": "keep",
    "epochs": 1,
    "shuffle": false,
    "shards": 1,
    "seed": 0,
    "precision": "fp32",
    "math": "fast",
    "log_spaced": false
  }
}
)json");
}

void expect_fixed_point(const std::string& path) {
  const std::string once = canonical_model(path);
  const std::string again = canonical_model(test::write_model(once));
  EXPECT_EQ(again, once) << path;
  // Not only the same text: the same nodes.
  EXPECT_EQ(show_model(test::write_model(once), {}, {.gradients = true, .dot = true}),
            show_model(path, {}, {.gradients = true, .dot = true}))
      << path;
}

TEST(Canonical, IsAFixedPointForEveryModel) {
  ASSERT_GE(shipped().size(), 7u);
  for (const std::string& path : shipped()) expect_fixed_point(path);
  expect_fixed_point(test::write_model(canonical_model(test::write_model(kSparse))));
}

// A random expression over x (batch, 4), W (4, 4), v (4) and b (a bool of the batch), of the given depth.
class RandomText {
 public:
  explicit RandomText(unsigned seed) : state_(seed * 2654435761u + 1) {}
  std::string value(int depth) {
    if (depth == 0) return pick({"x", "v", "2", "0.5", "1e-3", "pi", "gain", "W"});
    const auto inner = [&] { return value(depth - 1); };
    switch (next() % 9) {
      case 0:
        return "-" + inner();
      case 1:
        return "(" + inner() + ")";
      case 2:
        return pick({"tanh", "square", "relu", "leaky_relu", "sigmoid"}) + "(" + inner() + ")";
      case 3:
        return "leaky_relu(" + inner() + pick({", slope=1/4", ", slope = gain", ", slope=.5"}) + ")";
      case 4:
        return inner() + pick({"^", "**"}) + pick({"2", "-1", "(1 + 1)", "2^2", "-2^2"});
      case 5:
        return "where(" + condition(depth - 1) + ", " + inner() + "," + inner() + ")";
      case 6:
        return "sum(" + inner() + pick({", axis=-1, keepdims=true", ",keepdims=True,axis=[-1]"}) + ")";
      default:
        return inner() + pick({"+", "-", " * ", "/", "%", " @ "}) + inner();
    }
  }
  std::string condition(int depth) {
    if (depth <= 0) return pick({"x > 0", "v<=1", "1 == x", "not x > 0"});
    switch (next() % 4) {
      case 0:
        return "not " + condition(depth - 1);
      case 1:
        return "(" + condition(depth - 1) + ")";
      default:
        return condition(depth - 1) + pick({" and ", " or ", " and not "}) + condition(depth - 1);
    }
  }

 private:
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 33);
  }
  std::string pick(const std::vector<std::string>& of) { return of[next() % of.size()]; }
  std::uint64_t state_;
};

TEST(Canonical, RandomExpressionsKeepTheirMeaning) {
  using namespace expression;
  int built = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    const std::string given = RandomText(seed).value(1 + static_cast<int>(seed % 5));
    GraphBuilder::Impl first, second;
    for (GraphBuilder::Impl* graph : {&first, &second}) {
      graph->input("x", std::vector<std::int64_t>{kBatch, 4}, DType::f32);
      graph->parameter("W", {4, 4}, {.init = Init::zeros()});
      graph->parameter("v", {4}, {.init = Init::zeros()});
      graph->constants.emplace("gain", 1.5);
    }
    const Expression parsed = parse(given);
    ASSERT_TRUE(check({first}, parsed).errors.empty()) << given;
    try {
      build(first, parsed);
    } catch (const Error&) {
      continue;  // shapes that do not fit
    }
    ++built;
    const std::string canonical = text(first, parsed);
    const Expression again = parse(canonical);
    build(second, again);
    EXPECT_EQ(ir::to_string(second.graph), ir::to_string(first.graph)) << given << " became " << canonical;
    EXPECT_EQ(text(second, again), canonical) << given;
  }
  EXPECT_GT(built, 1000);
}

// A call of the function with random operands and attributes; most do not fit.
class RandomCall {
 public:
  explicit RandomCall(unsigned seed) : random_(seed) {}
  std::string text(const std::string& name) {
    const Function& function = *find_function(name);
    std::string call = name + "(";
    const std::size_t more = function.variadic ? below(3) : 0;
    for (std::size_t i = 0; i < function.operands.size() + more; ++i) {
      call += (i > 0 ? ", " : "") + pick({"x", "x", "m", "m", "z", "k", "b", "b", "W", "W", "v", "s", "one", "image"});
    }
    for (const ir::AttrDef& def : function.attributes) {
      if (def.required || below(2) == 0) call += fmt::format(", {}={}", def.name, value(def));
    }
    return call + ")";
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  std::string pick(const std::vector<std::string>& of) { return of[below(of.size())]; }
  std::string value(const ir::AttrDef& def) {
    if (!def.one_of.empty()) return std::string(def.one_of[below(def.one_of.size())]);
    if (std::holds_alternative<bool>(def.fallback)) return pick({"true", "false"});
    if (std::holds_alternative<std::int64_t>(def.fallback)) return pick({"0", "1", "2", "3", "-1", "-2", "4"});
    if (std::holds_alternative<double>(def.fallback))
      return pick({"0", "0.5", "-1", "1e-3", "2", "1/3", "-0.0", "1e20", "gain"});
    if (def.name == "shape") return pick({"[]", "[-1]", "[-1, 2]", "[-1, 2, 2]", "[4, 4]", "16", "[1]", "[-1, 1, 4]"});
    if (def.name == "size" || def.name == "extents" || def.name == "stride") return pick({"1", "[1]", "2", "[1, 1]"});
    return pick({"[]", "none", "1", "[-1]", "[0]", "[0, 1]", "[1, 0]", "[0, 2, 1]", "[1, 2]"});
  }
  std::mt19937 random_;
};

// Every function that a model may call, with all sorts of attributes.
TEST(Canonical, IsReadBackForEveryFunction) {
  const std::string before = R"json({"format": 1, "name": "calls", "constants": {"gain": 1.5},
    "data": {"train": {"npz": "none.npz"}},
    "inputs": {"x": ["batch", 4], "m": ["batch", 2, 2], "image": ["batch", 1, 1, 4], "z": ["batch"], "k": {"dtype": "i32", "shape": ["batch"]}},
    "parameters": {"W": {"shape": [4, 4], "init": "zeros"}, "v": {"shape": [4], "init": "zeros"},
                   "s": {"shape": [], "init": {"constant": 1}}, "one": {"shape": [1], "init": "zeros"}},
    "graph": ["b = x > 0", )json";
  const std::string after = R"json(, "loss = mean(x @ W)"], "outputs": ["b"],
    "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}}})json";
  std::map<std::string, int> read;
  const unsigned seeds = test::all_cases() ? 15 : 5;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    for (const std::string& name : names_of(functions())) {
      RandomCall random(seed);
      for (int tries = 0; tries < 100; ++tries) {
        const std::string call = random.text(name);
        std::string canonical;
        try {
          canonical = canonical_model(test::write_model(before + "\"y = " + call + "\"" + after));
        } catch (const Error&) {
          continue;  // shapes that do not fit, or no such axis
        }
        ++read[name];
        try {
          ASSERT_EQ(canonical_model(test::write_model(canonical)), canonical) << call;
        } catch (const Error& error) {
          FAIL() << call << " became what cannot be read: " << error.what() << "\n" << canonical;
        }
        break;
      }
    }
  }
  for (const std::string& name : names_of(functions())) EXPECT_GE(read[name], static_cast<int>(seeds / 5)) << name;
}

TEST(Canonical, LongSumsTakeNoStack) {
  GraphBuilder::Impl graph;
  graph.input("x", std::vector<std::int64_t>{kBatch, 4}, DType::f32);
  std::string sum = "x";
  for (int i = 0; i < 100000; ++i) sum += " + x";
  EXPECT_EQ(expression::text(graph, expression::parse(sum)), sum);
}

TEST(Check, NeedsNoDataAndCountsParameters) {
  const ModelSummary s = check_model(test::write_model(kSparse));
  EXPECT_FALSE(s.batch.has_value());
  EXPECT_EQ(s.parameter_elements, 4 * 3 + 3 * 5 + 5);
  EXPECT_EQ(s.entries, 5u);
  ASSERT_EQ(s.inputs.size(), 2u);
  EXPECT_EQ(to_string(s.inputs[1].second), "i32(batch)");
  ASSERT_EQ(s.outputs.size(), 2u);
  EXPECT_EQ(to_string(s.outputs[0].second), "f32(batch, 5)");
}

// relu has a second derivative of 0. Nothing is left of the derivative, or only the part of the factor.
TEST(Check, WarnsAboutSecondDerivativesOfRelu) {
  const auto checked = [](std::string_view activation, std::string_view u, std::string_view by) {
    return check_model(test::write_model(fmt::format(R"json({{"format": 1,
 "data": {{"train": {{"grid": {{"x": [0, 1, 9]}}, "x": "x"}}}}, "inputs": {{"x": ["batch", 1]}},
 "graph": ["h = dense(x, units=8, activation={})", "n = dense(h, units=1)", "u = {}", "u_x = gradient(sum(u), x)",
           "u_xx = gradient(sum(u_x), {})", "loss = mean(square(u)) + sum(square(u_xx))"],
 "outputs": ["u"],
 "train": {{"minimize": "loss", "optimizer": {{"sgd": {{"lr": 0.1}}}}, "batch": "all", "epochs": 1}}}})json",
                                                     activation, u, by)));
  };
  const std::vector<std::string> warnings = checked("relu", "n * x * (1 - x)", "x").warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].starts_with("the second derivative of 'h' (relu) is 0,")) << warnings[0];
  EXPECT_EQ(checked("leaky_relu", "n * x", "x").warnings.size(), 1u);
  EXPECT_TRUE(checked("tanh", "n * x", "x").warnings.empty());
  EXPECT_TRUE(checked("softplus", "n * clip(x, low=0, high=2)", "x").warnings.empty());  // no activation
  EXPECT_TRUE(checked("relu", "n", "n.W").warnings.empty());                             // a parameter
  try {
    (void)checked("relu", "n", "x");
    ADD_FAILURE() << "nothing depends on x";
  } catch (const Error& error) {
    const Diagnostic& first = error.diagnostics().front();
    EXPECT_EQ(first.message, "the second derivative is 0 everywhere, because 'h' is a relu");
    EXPECT_EQ(first.hint, "tanh, softplus and sin have second derivatives");
  }
}

// What an executor cannot run is a mistake that check finds: for a size that is known and for one that is assumed.
TEST(Check, PlansWhatWouldRun) {
  const char* known =
      R"json("train": {"random": {"rows": 7, "columns": {"a": {"normal": 1, "shape": [2]}}}, "x": ["a"]})json";
  const char* assumed = R"json("train": {"csv": "none.csv", "x": ["a", "b"]})json";
  for (const char* data : {known, assumed}) {
    const std::string path =
        test::write_model(std::string(R"json({"format": 1, "name": "wide", "data": {)json") + data + R"json(},
      "inputs": {"x": ["batch", 2]}, "parameters": {"w": {"shape": [2], "init": "zeros"}},
      "graph": ["y = x * w", "loss = cast(mean(cast(y, dtype=f64)), dtype=f32)"], "outputs": ["y"],
      "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 1}})json");
    SessionOptions ref;
    ref.executor = "ref";
    EXPECT_EQ(check_model(path, {}, ref).name, "wide");
    SessionOptions cuda;
    cuda.executor = "cuda";
    try {
      check_model(path, {}, cuda);
      ADD_FAILURE() << "cuda has no f64";
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostics().front().code, "step.unsupported");
    }
  }
}

TEST(Check, OverridesAreChecked) {
  try {
    check_model(test::write_model(kSparse), with({{"graph.p.units", "0"}}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().file, "--set graph.p.units=0");
  }
}

TEST(Show, ListsShapesAndGradients) {
  const std::string path = source_folder() + "/models/xor.json";
  const std::string plain = show_model(path);
  for (const char* line : {"x  f32(batch, 2)", "parameters (17 numbers)", "h.W      f32(2, 4)", "y_hat  answers y",
                           "loss = mean(square(y_hat - y), axis=none, keepdims=false)",
                           "optimizer   {\"sgd\": {\"lr\": 0.1, \"weight_decay\": 0, \"l2\": 0}}"}) {
    EXPECT_NE(plain.find(line), std::string::npos) << line << "\n" << plain;
  }
  EXPECT_EQ(plain.find("gradient"), std::string::npos);
  const std::string all = show_model(path, {}, {.gradients = true});
  EXPECT_TRUE(all.starts_with(plain));
  for (const char* line : {"h = tanh(", "y_hat.W:gradient = ", ": f32(4, 1)", "h.b:gradient = "}) {
    EXPECT_NE(all.find(line), std::string::npos) << line << "\n" << all;
  }
  const std::string dot = show_model(path, {}, {.gradients = false, .dot = true});
  EXPECT_TRUE(dot.starts_with("digraph \"xor\" {")) << dot;
  EXPECT_NE(dot.find("label=\"h.W: parameter\\nf32(2, 4)\""), std::string::npos) << dot;
}

TEST(Show, AnEntryIsOneLine) {
  const std::string text = show_model(source_folder() + "/models/realestate_mlp.json");
  EXPECT_NE(text.find("y_hat = dense(h, units=1, init={\"normal\": 0.408}, bias=zeros)"), std::string::npos) << text;
}

TEST(Show, StepHoldsTheOptimizer) {
  const Model model = load_model(source_folder() + "/models/xor.json");
  const std::string text = show_step(model);
  EXPECT_NE(text.find("phase train (capacity batch)"), std::string::npos) << text;
  EXPECT_NE(text.find("train/h.W:gradient"), std::string::npos) << text;
  EXPECT_NE(text.find("assign("), std::string::npos) << text;
  EXPECT_NE(show_step(model, {.gradients = false, .dot = true}).find("subgraph cluster_0"), std::string::npos);
}

}  // namespace
}  // namespace graphrun
