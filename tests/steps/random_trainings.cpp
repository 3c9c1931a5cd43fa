#include "steps/random_trainings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace graphrun::test {
namespace {

using Words = std::vector<std::string>;

// "{0}" is a value of the batch's rows, "{1}" another of the same columns, "{2}" a parameter of as many.
const Words kFormulas = {
    "{0} + {1}",
    "{0} - tanh({1})",
    "{0} * sigmoid({1})",
    "{0} / (square({1}) + 0.5)",
    "minimum({0}, {1})",
    "maximum({0}, 0.5 * {1})",
    "where({0} > {1}, {0}, tanh({1}))",
    "(square({0}) + 0.1) ^ tanh({1})",
    "abs({0})",
    "erf({0}) + 0.1 * {0}",
    "exp(-abs({0}))",
    "log1p(square({0}))",
    "sqrt(square({0}) + 0.1)",
    "sin({0})",
    "clip({0}, low=-0.75, high=1.25)",
    "softplus({0}) - 0.5",
    "{0} % (square({1}) + 0.5)",
    "{0} * floor(2 * (square({0}) + 0.5) / (square({0}) + 0.5))",
    "where(4 * (square({1}) + 0.5) / (square({1}) + 0.5) >= 4, {0}, {1})",
    "{0} + (square({1}) + 0.5) % (square({1}) + 0.5)",
    "{0} * {2}",
    "tanh({0} + {2})",
    "{2} - {0}",
    // Of each row.
    "softmax({0})",
    "log_softmax({0})",
    "{0} - mean({0}, axis=1, keepdims=true)",
    "{0} * tanh(sum({0}, axis=1, keepdims=true))",
    "{0} - max({0}, axis=1, keepdims=true)",
    "{0} + min({0}, axis=1, keepdims=true)",
    "{0} - logsumexp({0}, axis=1, keepdims=true)",
    "{0} + prod(tanh({0}), axis=1, keepdims=true)",
    "{0} / sqrt(variance({0}, axis=1, keepdims=true) + 0.1)",
    // Of the batch.
    "{0} - mean({0}, axis=0, keepdims=true)",
    "{0} * tanh(max({0}, axis=0, keepdims=true))",
    "{0} - min({0}, axis=0, keepdims=true)",
    "{0} + prod(tanh(square({0}) + 0.5), axis=0)",
    "{0} / sqrt(variance({0}, axis=0) + 0.5)",
    "{0} - mean({0}) + max(tanh({1}))",
    "layer_norm({0})",
    "rms_norm({0})",
    "batch_norm({0})",
    "dropout({0}, rate=0.25)",
    "{0} + 0.1 * random_normal({0})",
    "{0} * random_uniform({0}, low=0.5, high=1.5)",
    "{0} + stop_gradient(square({1}))",
};
const Words kActivations = {"relu", "tanh", "sigmoid",   "softplus", "leaky_relu", "elu",
                            "selu", "gelu", "gelu_tanh", "silu",     "erf",        "none"};
const Words kLosses = {
    "mean(square(out - y))",
    "mean(abs(out - y))",
    "mean(where(abs(out - y) < 1, 0.5 * square(out - y), abs(out - y) - 0.5))",
    "mean(sigmoid_cross_entropy(out, sigmoid(y)))",
    "mean(softmax_cross_entropy(out, softmax(y)))",
    "sum(square(out - y)) / 50",
    "max(abs(out - y))",
    "mean(logsumexp(out - y, axis=1))",
};
const Words kMetrics = {"mse", "rmse", "mae", "r2"};
const Words kRates = {
    "0.01",
    R"({"cosine": {"from": 0.02, "to": 0, "epochs": 2}})",
    R"({"linear": {"from": 0, "to": 0.01, "steps": 3}})",
    R"({"step": {"from": 0.02, "factor": 0.5, "steps": 2}})",
    R"({"exponential": {"from": 0.02, "factor": 0.9, "steps": 5}})",
    R"({"runtime": 0.01})",
};
const Words kOptimizers = {"sgd", "momentum", "nesterov", "rmsprop", "adagrad", "adam", "adamw"};

class Writer {
 public:
  explicit Writer(std::uint64_t seed) : engine_(seed), seed_(seed) {}

  std::string run() {
    rows_ = one_of<int>({1, 5, 7, 33, 40, 64, 100, 150});
    const bool wide = chance(0.2);
    const int columns = wide ? one_of<int>({65, 100, 200, 784}) : one_of<int>({1, 2, 3, 4, 5, 8, 13, 20, 37}),
              targets = one_of<int>({1, 1, 2, 3, 5});
    classes_ = static_cast<int>(range(2, 6));
    values_.push_back({"x", columns, true});
    const std::int64_t wanted = range(1, 7);
    while (static_cast<std::int64_t>(statements_.size()) < wanted) add_one();
    const Value last = values_.back();
    statement("out", fmt::format("dense({}, units={})", last.name, targets));
    std::string loss = one_of(kLosses);
    if (chance(0.2)) loss += " + 0.001 * sum(square(out.W))";
    if (last.is_of_x && chance(0.15)) loss += " + 0.05 * mean(square(gradient(sum(out), x)))";
    statement("loss", loss);
    const std::string minimized = objectives();
    return fmt::format(
        R"({{"format": 1, "name": "random_{}", "data": {{{}}}, "inputs": {{"x": ["batch", {}], "k": {{"shape": ["batch"], "dtype": "i32"}}, "y": ["batch", {}]}},
 "parameters": {{{}}},
 "graph": [{}],
 "outputs": {{"out": "y"}}, "train": {}}})",
        seed_, data(columns, targets), columns, targets, fmt::join(parameters_, ", "), fmt::join(statements_, ",\n  "),
        training(minimized));
  }

 private:
  struct Value {
    std::string name;
    int columns;
    bool is_of_x;  // so that it has a gradient there
  };

  struct Layer {
    std::string name;
    int inputs, units;
  };

  std::int64_t range(std::int64_t low, std::int64_t high) {  // both inclusive
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(double p) { return static_cast<double>(engine_() >> 11) * 0x1p-53 < p; }
  template <class T>
  T one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(range(0, static_cast<std::int64_t>(list.size()) - 1))];
  }

  void statement(std::string_view name, std::string_view formula) {
    statements_.push_back(fmt::format("\"{} = {}\"", name, formula));
  }

  Value draw() {
    const auto last = static_cast<std::int64_t>(values_.size()) - 1;
    return values_[static_cast<std::size_t>(range(chance(0.7) ? std::max<std::int64_t>(last - 1, 0) : 0, last))];
  }
  Value with_columns(int columns) {
    std::vector<Value> list;
    std::ranges::copy_if(values_, std::back_inserter(list), [&](const Value& v) { return v.columns == columns; });
    return one_of(list);
  }

  void add_one() {
    const std::string name = fmt::format("v{}", statements_.size());
    const Value from = draw();
    Value made{name, from.columns, from.is_of_x};
    const std::int64_t kind = range(0, 19);
    if (kind < 7) {
      made.columns = chance(0.1) ? one_of<int>({65, 96, 150}) : one_of<int>({1, 2, 4, 6, 8, 12, 16, 21, 32, 50});
      const std::string activation = one_of(kActivations);
      statement(name, fmt::format("dense({}, units={}{})", from.name, made.columns,
                                  activation == "none" ? "" : ", activation=" + activation));
      layers_.push_back({name, from.columns, made.columns});
      trained_.push_back(name);
    } else if (kind == 7) {
      if (layers_.empty()) return;
      const Layer layer = one_of(layers_);
      const Value other = with_columns(layer.inputs);
      made = {name, layer.units, other.is_of_x};
      statement(name, fmt::format("dense({}, share={})", other.name, layer.name));
    } else if (kind == 8) {
      made = {name, 1 + static_cast<int>(range(0, 3)), false};
      statement(name, fmt::format("embedding(k, entries={}, units={})", classes_, made.columns));
      trained_.push_back(name);
    } else if (kind == 9) {
      const Value other = draw();
      made.columns += other.columns;
      made.is_of_x = made.is_of_x || other.is_of_x;
      statement(name, fmt::format("concat({}, {}, axis=1)", from.name, other.name));
    } else if (kind == 10) {
      if (from.columns < 2) return;
      made.columns = static_cast<int>(range(1, from.columns - 1));
      statement(name, fmt::format("slice({}, axis=1, start={}, stop={})", from.name, from.columns - made.columns,
                                  from.columns));
    } else if (kind == 11) {
      made = {name, classes_, false};
      statement(name, fmt::format("cast(one_hot(k, classes={}), dtype=f32)", classes_));
    } else {
      const std::string parameter = fmt::format("p{}", parameters_.size());
      const std::string formula = one_of(kFormulas);
      if (formula.find("{2}") != std::string::npos) {
        parameters_.push_back(
            fmt::format(R"("{}": {{"shape": [{}], "init": {{"normal": 0.7}}}})", parameter, from.columns));
        trained_.push_back(parameter);
      }
      if (formula.find("_norm({0})") != std::string::npos) trained_.push_back(name);
      statement(name, fmt::format(fmt::runtime(formula), from.name, with_columns(from.columns).name, parameter));
    }
    values_.push_back(made);
  }

  std::string data(int columns, int targets) {
    const auto split = [&](std::string_view name, int rows) {
      return fmt::format(
          R"("{}": {{"random": {{"rows": {}, "seed": {}, "columns": {{"a": {{"normal": 1, "shape": [{}]}}, )"
          R"("c": {{"integers": [0, {}]}}, "b": {{"normal": 1, "shape": [{}]}}}}}}, "x": ["a"], "k": "c", "y": ["b"]}})",
          name, rows, range(0, 1000), columns, classes_, targets);
    };
    std::string text = split("train", rows_);
    if (chance(0.3)) text += ", " + split("validation", static_cast<int>(range(1, 50)));
    return text;
  }

  std::string optimizer() {
    const std::string name = one_of(kOptimizers), rate = one_of(kRates);
    return fmt::format(R"("optimizer": {{"{}": {{"lr": {}{}}}}})", name, rate,
                       chance(0.2) ? R"(, "weight_decay": 0.1)" : "");
  }
  // All by one loss, or the last layer by itself and the others by another one.
  std::string objectives() {
    if (trained_.empty() || !chance(0.15)) return R"("minimize": "loss", )" + optimizer();
    std::string other = "loss";
    for (const std::string& value : trained_) other += fmt::format(" + 0.1 * mean(square({}))", value);
    statement("other", other);
    const std::string head = optimizer(), rest = optimizer();
    return fmt::format(
        R"("objectives": {{"head": {{"minimize": "loss", "parameters": ["out"], {}}},
  "rest": {{"minimize": "other", "parameters": ["{}"], {}, "every": {}}}}})",
        head, fmt::join(trained_, "\", \""), rest, range(1, 2));
  }

  std::string training(std::string_view minimized) {
    std::string batch = "\"all\"";
    if (chance(0.6)) batch = fmt::format("{}", std::min(rows_, one_of<int>({1, 3, 8, 16, 40, 70})));
    std::string text = fmt::format(R"({{{}, "batch": {})", minimized, batch);
    if (chance(0.5)) text += R"(, "shuffle": true)";
    if (batch != "\"all\"" && chance(0.2)) text += R"(, "last_batch": "drop")";
    if (chance(0.25)) text += R"(, "clip_norm": 0.5)";
    if (chance(0.4)) text += fmt::format(R"(, "metrics": ["{}"])", one_of(kMetrics));
    if (chance(0.5)) text += R"(, "math": "exact")";
    return text + fmt::format(R"(, "epochs": 3, "seed": {}}})", seed_);
  }

  std::mt19937_64 engine_;
  std::uint64_t seed_;
  int rows_ = 1, classes_ = 2;
  std::vector<Value> values_;
  std::vector<Layer> layers_;
  Words statements_, parameters_, trained_;  // the last: parameters, and values of layers that have some
};

}  // namespace

std::string random_training(std::uint64_t seed) {
  return Writer(seed).run();
}

}  // namespace graphrun::test
