#include "executors/verify_models.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/graph_builder.h"
#include "support/tensors.h"

namespace graphrun::test {

Model verified_model(std::string optimizer) {
  GraphBuilder graph(3);
  graph.input("x", {kBatch, 4});
  graph.input("y", {kBatch, 4});
  graph.parameter("W", {4, 4}, Init::uniform(-1, 1));
  graph.parameter("V", {4, 4}, Init::uniform(-1, 1));
  graph.parameter("c", {4}, Init::uniform(0.5, 1));
  graph.parameter("wide", {8, 8}, Init::uniform(-1, 1));  // 256 bytes: the next buffer lies right behind
  graph.expression("z = x @ W");
  graph.expression("a = z + c");
  graph.expression("h = tanh(a)");
  graph.name(graph.op("leaky_relu", {graph.find("z")}, {{"slope", 0.25}}), "leaky");
  graph.name(graph.op("clip", {graph.find("z")}, {{"low", -0.25}, {"high", 0.25}}), "clipped");
  graph.expression("q = leaky / (square(a) + 1)");
  graph.name(graph.op("greater", {graph.find("z"), graph.find("clipped")}), "above");
  graph.name(graph.op("where", {graph.find("above"), graph.find("h"), graph.find("q")}), "mixed");
  graph.expression("p = mixed @ V");
  graph.expression("d = p - y");
  graph.name(graph.op("sum", {graph.expression("V * V")}, {{"axes", std::vector<std::int64_t>{0}}}), "columns");
  graph.name(graph.op("tanh", {graph.find("wide")}), "bent");
  graph.expression("error = mean(square(d))");
  graph.expression("loss = error + 0.001 * (sum(columns) + sum(bent))");
  Model model(std::move(graph));
  model.name = "small";
  model.outputs = {{model.graph.find("p"), "p", "y"}};
  model.train.minimize = model.graph.find("loss");
  model.train.metrics = {{"mse", {}}};
  model.train.optimizer = {std::move(optimizer), {{"lr", 0.1}}, {}};
  model.train.seed = 3;
  const auto columns = [](std::string_view split, std::int64_t rows) {
    return std::vector<std::pair<std::string, HostTensor>>{
        {"x", random_tensor(DType::f32, {rows, 4}, -1, 1, fmt::format("{}/x", split))},
        {"y", random_tensor(DType::f32, {rows, 4}, -1, 1, fmt::format("{}/y", split))}};
  };
  model.data.splits = {{"train", columns("train", 7)}, {"test", columns("test", 5)}};
  return model;
}

Model classifier() {
  GraphBuilder graph(3);
  graph.input("x", {kBatch, 4});
  graph.input("label", {kBatch}, DType::i32);
  graph.parameter("W", {4, 6}, Init::uniform(-20, 20));  // confident: some losses are nearly 0
  graph.parameter("table", {6, 2}, Init::uniform(-1, 1));
  using Integers = std::vector<std::int64_t>;
  graph.name(graph.op("dropout", {graph.find("x")}, {{"rate", 0.25}}), "kept");
  graph.expression("logits = kept @ W");
  graph.name(graph.op("softmax", {graph.find("logits")}), "probability");
  graph.name(graph.op("log_softmax", {graph.find("logits")}), "logarithm");
  graph.name(graph.op("softmax_cross_entropy", {graph.find("logits"), graph.find("label")}), "surprise");
  graph.name(graph.op("logsumexp", {graph.find("logits")}, {{"axes", Integers{1}}}), "top");
  graph.name(graph.op("max", {graph.find("logits")}, {{"axes", Integers{1}}}), "largest");
  graph.name(graph.op("prod", {graph.find("probability")}, {{"axes", Integers{1}}}), "product");
  graph.name(graph.op("argmax", {graph.find("logits")}), "guess");
  graph.name(graph.op("one_hot", {graph.find("guess")}, {{"classes", std::int64_t{6}}}), "hot");
  graph.name(graph.op("gather", {graph.find("table"), graph.find("label")}), "rows");
  graph.name(graph.op("transpose", {graph.find("table")}), "turned");
  graph.name(graph.op("slice", {graph.find("logits")}, {{"axis", std::int64_t{1}}, {"start", std::int64_t{2}}}),
             "part");
  graph.name(graph.op("concat", {graph.find("part"), graph.find("rows")}, {{"axis", std::int64_t{1}}}), "joined");
  graph.name(graph.op("cast", {graph.find("hot")}, {{"dtype", std::string("f32")}}), "guessed");
  graph.expression("right = guessed * probability");
  graph.expression(
      "loss = mean(surprise) + 0.01 * (mean(top - largest) + mean(product) + mean(square(joined)) "
      "+ mean(logarithm) + mean(right) + sum(square(turned)))");
  Model model(std::move(graph));
  model.name = "classifier";
  model.outputs = {{model.graph.find("probability"), "probability", ""}};
  model.train.minimize = model.graph.find("loss");
  model.train.optimizer = {"sgd", {{"lr", 0.01}}, {}};
  model.train.shuffle = true;
  model.data.splits = {{"train",
                        {{"x", random_tensor(DType::f32, {7, 4}, -1, 1, "x")},
                         {"label", random_tensor(DType::i32, {7}, 0, 6, "label")}}}};
  return model;
}

}  // namespace graphrun::test
