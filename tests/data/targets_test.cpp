// Float targets of cross-entropies are probabilities: checked when data are read and when a session gets arrays, where
// the target is the data itself.
#include "data_fixture.h"
#include "graph/frontend/step/class_numbers.h"
#include "graphrun/session.h"

namespace graphrun {
namespace {

class TargetsTest : public DataTest {
 protected:
  // Messages from loading a model with a loss of h (batch, outputs) and the target y.
  std::string loaded(const std::string& loss, const std::string& y, int outputs, const std::string& of_y = "") const {
    const std::string columns = std::to_string(outputs);
    write("model.json", R"js({"format": 1, "data": {"train": {"inline": {"x": [[1, 2], [3, 5], [2, 2]], "y": )js" + y +
                            R"js(}}}, "inputs": {"x": ["batch", 2], "y": )js" +
                            (of_y.empty() ? "[\"batch\", " + columns + "]" : of_y) +
                            R"js(}, "graph": ["h = dense(x, units=)js" + columns + R"js()", "loss = )js" + loss +
                            R"js("], "outputs": {"h": "y"},
                            "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 1}})js");
    try {
      load_model(path("model.json"));
    } catch (const Error& error) {
      return error.diagnostics().front().message + " | " + error.diagnostics().front().hint;
    }
    return "no error";
  }
};

const char* const kSigmoid = "mean(sigmoid_cross_entropy(h, y))";
const char* const kSoftmax = "mean(softmax_cross_entropy(h, y))";

TEST_F(TargetsTest, OfASigmoidAreProbabilities) {
  EXPECT_EQ(loaded(kSigmoid, "[[0], [1], [0.3]]", 1), "no error");
  EXPECT_EQ(loaded(kSigmoid, "[[0, 0], [1, 1], [0.3, 1]]", 2), "no error");
  EXPECT_EQ(
      loaded(kSigmoid, "[[0], [1], [-1]]", 1),
      "input 'y' of train: row 2: -1 is not a probability from 0 to 1, which the target of sigmoid_cross_entropy of "
      "'h' must be | labels of -1 and 1 become 0 and 1 by a formula: (y + 1) / 2, in the data or in "
      "the loss");
  EXPECT_NE(loaded(kSigmoid, "[[0], [2], [1]]", 1).find("row 1: 2 is not a probability"), std::string::npos);
  EXPECT_NE(loaded(kSigmoid, "[[0], [2], [1]]", 1).find("softmax_cross_entropy and an i32 target"), std::string::npos);
  EXPECT_NE(loaded(kSigmoid, "[[0, 0], [1, 1.5], [1, 1]]", 2).find("row 1, column 1: 1.5 is no"), std::string::npos);
}

TEST_F(TargetsTest, OfASoftmaxSumToOne) {
  EXPECT_EQ(loaded(kSoftmax, "[[0, 1, 0], [0.2, 0.3, 0.5], [0.33, 0.33, 0.33]]", 3), "no error");
  EXPECT_EQ(loaded(kSoftmax, "[[0, 1, 0], [0.5, 0.4, 0.3], [1, 0, 0]]", 3),
            "input 'y' of train: row 1, column 0: the 3 values from there on sum to 1.2, not to 1: the target of "
            "softmax_cross_entropy of 'h' is one-hot, or the probability of each class | sigmoid_cross_entropy takes "
            "several labels in a row, or none");
  EXPECT_NE(loaded(kSoftmax, "[[1], [0], [1]]", 1).find("for a target of one column, use sigmoid_cross_entropy"),
            std::string::npos);
  EXPECT_NE(loaded(kSoftmax, "[[0, 0, 0], [0, 1, 0], [1, 0, 0]]", 3).find("row 0, column 0: the 3 values"),
            std::string::npos);
  EXPECT_NE(loaded(kSoftmax, "[[0, 1, 0], [-0.5, 1, 0.5], [1, 0, 0]]", 3).find("row 1, column 0: -0.5 is no"),
            std::string::npos);
}

TEST_F(TargetsTest, ThatTheGraphComputesAreNotChecked) {
  EXPECT_EQ(loaded("mean(sigmoid_cross_entropy(h, (y + 1) / 2))", "[[-1], [1], [1]]", 1), "no error");
  EXPECT_EQ(loaded("mean(softmax_cross_entropy(h, y / 10))", "[[0, 10], [4, 6], [10, 0]]", 2), "no error");
  EXPECT_EQ(loaded("mean(square(h - y))", "[[-1], [1], [5]]", 1), "no error");
}

TEST_F(TargetsTest, AreFollowedThroughWhatMovesValues) {
  const std::string wide = "[\"batch\", 3]", two = "[[0, 1, 7], [0.5, 0.5, 7], [1, 0, 7]]";
  EXPECT_EQ(loaded("mean(softmax_cross_entropy(h, slice(y, start=0, stop=2)))", two, 2, wide), "no error");
  EXPECT_NE(
      loaded("mean(softmax_cross_entropy(h, slice(y, start=1, stop=3)))", two, 2, wide).find("row 0, column 2: 7"),
      std::string::npos);
  EXPECT_NE(loaded("mean(sigmoid_cross_entropy(h, cast(y, dtype=f32)))", "[[1], [0], [-1]]", 1,
                   R"({"dtype": "i32", "shape": ["batch", 1]})")
                .find("row 2: -1 is no"),
            std::string::npos);
}

TEST_F(TargetsTest, OfThreeWordsNeedThreeOutputs) {
  write("d.csv", "a,y\n1,no\n2,yes\n3,unknown\n");
  write("model.json", R"js({"format": 1, "data": {"train": {"csv": "d.csv", "x": ["a"], "y": "y"},
      "transform": {"y": ["classes"]}}, "inputs": {"x": ["batch", 1], "y": ["batch", 1]},
      "graph": ["z = dense(x, units=1)", "loss = mean(sigmoid_cross_entropy(z, y))"], "outputs": {"z": "y"},
      "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 1}})js");
  try {
    load_model(path("model.json"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().size(), 1u);
    EXPECT_EQ(error.diagnostics().front().message,
              "input 'y' has 3 classes, no, yes, unknown; sigmoid_cross_entropy of 'z' takes two");
    EXPECT_EQ(error.diagnostics().front().hint,
              "3 classes need 3 outputs and softmax_cross_entropy; the target is then {\"dtype\": \"i32\", \"shape\": "
              "[\"batch\"]}");
  }
}

TEST(Targets, OfASessionAreCheckedWhenItIsMade) {
  GraphBuilder graph(2);
  const Value x = graph.input("x", {kBatch, 1}), y = graph.input("y", {kBatch, 1});
  Model model(std::move(graph));
  model.train.minimize = model.graph.expression("mean(sigmoid_cross_entropy(x * 2, y))");
  model.outputs = {{x, "out", "y"}};
  model.data.splits = {
      {"train", {{"x", HostTensor({2, 1}, Floats{1, 2})}, {"y", HostTensor({2, 1}, Floats{0, 3})}}, 0}};
  EXPECT_THROW(Session(std::move(model), {}), Error);
  static_cast<void>(y);
}

}  // namespace
}  // namespace graphrun
