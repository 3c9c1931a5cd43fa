// prediction_fixture.h: models over tables that a test writes: trained, saved, and asked about rows of other files.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "data_fixture.h"
#include "graphrun/session.h"
#include "graphrun/weights.h"

namespace graphrun {
using TextRows = std::vector<std::vector<std::string>>;
using Overrides = std::vector<std::pair<std::string, std::string>>;

class PredictionTest : public DataTest {
 protected:
  // A model file over a data section; x has so many columns.
  void write_model(const std::string& data, int width = 2, const std::string& more = "",
                   const std::string& output = "tanh(x @ W + 0.25) @ V") const {
    write("model.json", R"js({"format": 1, "data": )js" + data + R"js(,
      "inputs": {"x": ["batch", )js" +
                            std::to_string(width) + R"js(], "y": ["batch", 1]},
      "parameters": {"W": {"shape": [)js" +
                            std::to_string(width) + R"js(, 3], "init": {"normal": 1}},
                     "V": {"shape": [3, 1], "init": {"normal": 1}}},
      "graph": ["z = )js" + output +
                            R"js(", "loss = mse(z, y)"], "outputs": {"z": "y"},
      "train": {"minimize": "loss", "metrics": ["mse"], "optimizer": {"sgd": {"lr": 0.01}}, "epochs": 2)js" +
                            more + "}}");
  }
  void write_csv(const std::string& name, const std::vector<std::string>& header, const TextRows& rows) const {
    std::string text;
    const auto add = [&](const std::vector<std::string>& line) {
      for (std::size_t i = 0; i < line.size(); ++i) text += (i > 0 ? "," : "") + line[i];
      text += '\n';
    };
    add(header);
    for (const auto& row : rows) add(row);
    write(name, text);
  }
  void train(const Overrides& set = {}) const {
    LoadOptions options;
    options.overrides = set;
    Session session(load_model(path("model.json"), options));
    session.train();
    save_weights(session, path("w.npz"));
  }
  std::vector<float> predict(const std::string& file, const Overrides& set = {}) const {
    LoadOptions options;
    options.weights = path("w.npz");
    options.overrides = set;
    const auto rows = load_inputs(path("model.json"), path(file), options);
    options.predicts = rows.front().second.shape()[0];
    Session session(load_model(path("model.json"), options));
    const HostTensor z = session.predict(rows);
    return {z.elements<float>().begin(), z.elements<float>().end()};
  }
  DataSet evaluated(const Overrides& set = {}) const {
    LoadOptions options;
    options.weights = path("w.npz");
    options.overrides = set;
    return load_model(path("model.json"), options).data;
  }
  template <class F>
  std::string message(F f) const {
    try {
      f();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      return error.what();
    }
    return "no mistake was found";
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
};

struct Dice {
  explicit Dice(unsigned seed) : engine(seed) {}
  int below(int n) { return static_cast<int>(engine() % static_cast<unsigned>(n)); }
  bool coin() { return below(2) == 0; }
  double real() { return static_cast<double>(engine() % 200001) / 1000.0 - 100; }
  std::mt19937 engine;
};

}  // namespace graphrun
