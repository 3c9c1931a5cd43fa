// Class indices out of range are errors in the data. graphrun finds them when it reads data, opens a session or
// predicts, also behind ops that only move values, but not in computed values.
#include "graph/frontend/step/class_numbers.h"
#include "data_fixture.h"
#include "graphrun/session.h"

namespace graphrun {
namespace {

using Ints = std::vector<std::int32_t>;

HostTensor ints(const Shape& shape, const Ints& values) {
  HostTensor tensor(DType::i32, shape);
  std::copy(values.begin(), values.end(), tensor.elements<std::int32_t>().begin());
  return tensor;
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.diagnostics().front().message;
  }
  return "no error";
}

class ClassNumbersTest : public DataTest {
 protected:
  // x (batch, 2) to three classes c (batch); the labels of the rows.
  std::string loaded(const std::string& labels, const std::string& more = "") const {
    write("model.json",
          R"js({"format": 1, "data": {"train": {"inline": {"x": [[1, 2], [3, 5], [2, 2], [4, 4]], "c": )js" + labels +
              "}" + more + R"js(}}, "inputs": {"x": ["batch", 2], "c": {"dtype": "i32", "shape": ["batch"]}},
      "graph": [{"name": "h", "op": "dense", "inputs": ["x"], "units": 3},
      "loss = mean(softmax_cross_entropy(h, c))"], "outputs": {"h": "c"},
      "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 1}})js");
    return message_of([&] { load_model(path("model.json")); });
  }
};

TEST_F(ClassNumbersTest, LabelsAreCheckedWhenTheyAreRead) {
  EXPECT_EQ(loaded("[0, 1, 2, 0]"), "no error");
  EXPECT_EQ(loaded("[0, 1, 3, 0]"),
            "input 'c' of train: row 2: 3 is not a valid class from 0 to 2: 'softmax_cross_entropy_1' "
            "(softmax_cross_entropy) has 3");
  EXPECT_NE(loaded("[0, 1, 2, -1]").find("row 3: -1 is not a valid class from 0 to 2"), std::string::npos);
  // Rows are those of the file, whatever the split.
  EXPECT_EQ(loaded("[0, 1, 2, 0]", R"(, "range": [1, 4])"), "no error");
  EXPECT_NE(loaded("[0, 1, 2, 7]", R"(, "range": [1, 4])").find("row 3: 7 is not a valid class"), std::string::npos);
  EXPECT_EQ(loaded("[7, 1, 2, 0]", R"(, "range": [1, 4])"), "no error");
}

// Index ranges that graphrun finds in a graph of the inputs i (batch, 2, 3) and k (batch).
std::string ranges(const std::string& expression) {
  GraphBuilder graph(8);
  graph.input("i", {kBatch, 2, 3}, DType::i32);
  graph.input("k", {kBatch}, DType::i32);
  graph.input("f", {kBatch});
  graph.parameter("T", {5, 4});
  const Value value = graph.expression(expression);
  Model model(std::move(graph));
  model.outputs = {{value, "out", ""}};
  std::string text;
  for (const ClassRange& range : class_numbers(model)) {
    text += range.input;
    for (const auto& [begin, end] : range.part) text += "[" + std::to_string(begin) + "," + std::to_string(end) + ")";
    text += "<" + std::to_string(range.count) + " ";
  }
  return text;
}

TEST(ClassNumbers, AreFollowedToTheInputsThroughWhatMovesValues) {
  EXPECT_EQ(ranges("one_hot(k, classes=9)"), "k<9 ");
  EXPECT_EQ(ranges("gather(T, i)"), "i[0,2)[0,3)<5 ");
  EXPECT_EQ(ranges("gather(T, reshape(i, shape=[-1]))"), "i[0,2)[0,3)<5 ");
  EXPECT_EQ(ranges("gather(T, slice(i, axis=2, start=1, stop=2))"), "i[0,2)[1,2)<5 ");
  EXPECT_EQ(ranges("gather(T, slice(slice(i, axis=2, start=1), axis=2, start=-1))"), "i[0,2)[2,3)<5 ");
  EXPECT_EQ(ranges("gather(T, reshape(slice(slice(i, axis=2, start=1, stop=2), axis=1, start=1), shape=[-1]))"),
            "i[1,2)[1,2)<5 ");
  EXPECT_EQ(ranges("gather(T, slice(transpose(i, axes=[0, 2, 1]), axis=1, stop=1))"), "i[0,2)[0,1)<5 ");
  EXPECT_EQ(ranges("gather(T, slice(concat(i, i, axis=1), axis=1, start=1, stop=3))"), "i[1,2)[0,3)<5 i[0,1)[0,3)<5 ");
  EXPECT_EQ(ranges("gather(T, slice(concat(i, i, axis=1), axis=1, start=2))"), "i[0,2)[0,3)<5 ");
  EXPECT_EQ(ranges("scatter_add(k, cast(reshape(i, shape=[-1, 6]), dtype=f32), entries=7)"), "k<7 ");
  // Computed values are not checked.
  EXPECT_EQ(ranges("gather(T, cast(cast(i, dtype=f32) + 1, dtype=i32))"), "");
  EXPECT_EQ(ranges("one_hot(cast(f, dtype=i32), classes=9)"), "");
  EXPECT_EQ(ranges("cast(i, dtype=f32)"), "");
}

TEST_F(ClassNumbersTest, OfTheApi) {
  const auto model_of = [](const Ints& labels) {
    GraphBuilder graph(2);
    graph.input("k", {kBatch}, DType::i32);
    graph.input("y", {kBatch, 4});
    graph.parameter("T", {5, 4}, Init::normal(1));
    const Value out = graph.expression("found = gather(T, k)");
    graph.expression("loss = mean(square(found - y))");
    Model model(std::move(graph));
    model.train.minimize = model.graph.find("loss");
    model.outputs = {{out, "found", "y"}};
    const auto rows = static_cast<std::int64_t>(labels.size());
    model.data.splits = {{"train", {{"k", ints({rows}, labels)}, {"y", HostTensor(DType::f32, {rows, 4})}}}};
    return model;
  };
  EXPECT_EQ(message_of([&] { Session session(model_of({0, 4, 3})); }), "no error");
  EXPECT_EQ(message_of([&] {
              Session session(model_of({0, 4, 5}));
            }),
            "input 'k' of train: row 2: 5 is not a valid index from 0 to 4: 'found' (gather) has 5");
  Session session(model_of({0, 4, 3}));
  EXPECT_EQ(message_of([&] { session.predict({{"k", ints({3}, {1, 2, 0})}}); }), "no error");
  EXPECT_EQ(message_of([&] {
              session.predict({{"k", ints({3}, {1, -2, 0})}});
            }),
            "predict: input 'k': row 1: -2 is not a valid index from 0 to 4: 'found' (gather) has 5");
}

}  // namespace
}  // namespace graphrun
