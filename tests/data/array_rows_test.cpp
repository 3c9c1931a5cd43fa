// Rows that a program gives as arrays are changed as rows of the model's table are: the same predictions as of a file.
#include "graphrun/session.h"
#include "graphrun/weights.h"
#include "prediction_fixture.h"

namespace graphrun {
namespace {

class ArrayRowsTest : public PredictionTest {
 protected:
  Session trained() const {
    LoadOptions options;
    options.weights = path("w.npz");
    return Session(load_model(path("model.json"), options));
  }
  static std::vector<float> floats(const HostTensor& tensor) {
    return {tensor.elements<float>().begin(), tensor.elements<float>().end()};
  }
};

const char* const kRows = R"js({"train": {"csv": "d.csv", "x": ["a", "color"], "y": "t", "missing": {"a": "median"}},
    "transform": {"a": ["log", "standardize"], "color": ["one_hot"], "y": ["standardize"]}})js";

TEST_F(ArrayRowsTest, PredictAsAFileDoes) {
  write_csv("d.csv", {"t", "color", "a"},
            {{"1", "red", "1"}, {"2", "blue", "8"}, {"5", "green", ""}, {"3", "red", "4"}, {"9", "blue", "2"}});
  write_model(kRows, 4);
  train();
  write_csv("new.csv", {"a", "color"}, {{"3", "green"}, {"", "red"}, {"0.5", "blue"}});
  const std::vector<float> wanted = predict("new.csv");
  Session session = trained();
  const std::vector<float> rows = {3, 2, std::nanf(""), 0, 0.5f, 1};  // colours in the order of the training rows
  EXPECT_EQ(floats(session.predict({{"x", HostTensor({3, 2}, rows)}})), wanted);
  std::vector<float> into(3);
  const std::span<const std::byte> in = std::as_bytes(std::span(rows));
  const std::span<std::byte> out = std::as_writable_bytes(std::span(into));
  session.predict(std::span(&in, 1), std::span(&out, 1));
  EXPECT_EQ(into, wanted);
  EXPECT_EQ(session.prediction_inputs().front().second.shape[1], 2);
  EXPECT_TRUE(has(message([&] {
                    session.predict({{"x", HostTensor({1, 2}, Floats{3, 5})}});
                  }),
                  "predict: input 'x', column 'color': row 0: '5' is not one of the categories red, blue, green"));
  EXPECT_TRUE(has(message([&] {
                    session.predict({{"x", HostTensor({1, 3}, Floats{3, 0, 1})}});
                  }),
                  "a row has 3 numbers, not 2, one for each of a, color"));
}

TEST_F(ArrayRowsTest, AreFittedToAndKeptWithWeights) {
  write_model(R"js({"train": {"csv": "none.csv", "x": ["a", "b"], "y": "t"},
      "transform": {"a": ["standardize"], "x": ["minmax"], "y": [{"scale": 0.5}, "standardize"]}})js");
  LoadOptions options;
  options.data = DataUse::given;
  Model model = load_model(path("model.json"), options);
  const HostTensor x({3, 2}, Floats{1, 10, 2, 30, 3, 20}), y({3, 1}, Floats{4, 6, 8});
  model.data.splits = {{"train", {{"x", x}, {"y", y}}, 0, {"x", "y"}}};
  Session session(std::move(model));
  EXPECT_EQ(floats(session.model().data.splits[0].columns[0].second), (std::vector<float>{0, 0, 0.5, 1, 1, 0.5}));
  EXPECT_NEAR(floats(session.model().data.splits[0].columns[1].second)[0], -1.2247449, 1e-6);
  session.train();
  save_weights(session, path("w.npz"));
  options.weights = path("w.npz");
  options.data = DataUse::none;
  Session other(load_model(path("model.json"), options));
  EXPECT_EQ(floats(other.predict({{"x", x}})), floats(session.predict({{"x", x}})));
}

}  // namespace
}  // namespace graphrun
