#include <graphrun/graph_builder.h>
#include <graphrun/session.h>

#include <cstdio>
#include <utility>
#include <vector>

int main() {
  using namespace graphrun;
  GraphBuilder graph(4);  // rows of a batch
  graph.input("x", {kBatch, 2});
  graph.input("y", {kBatch, 1});
  const Value h = graph.dense("h", graph.find("x"), 4, "tanh");
  const Value y_hat = graph.dense("y_hat", h, 1);

  Model model(std::move(graph));
  model.outputs = {{y_hat, "y_hat", "y"}};
  model.train.minimize = model.graph.expression("loss = mean(square(y_hat - y))");
  model.train.optimizer.attributes = {{"lr", 0.1}};  // learning rate of sgd, the default optimizer
  model.train.epochs = 2000;

  const std::vector<float> x = {0, 0, 0, 1, 1, 0, 1, 1}, y = {0, 1, 1, 0};
  model.data.splits = {{"train", {{"x", HostTensor({4, 2}, x)}, {"y", HostTensor({4, 1}, y)}}}};

  Session session(std::move(model));  // plans and allocates; training steps allocate nothing
  session.train();
  const HostTensor answer = session.predict({{"x", HostTensor({4, 2}, x)}});
  for (const float value : answer.elements<float>()) std::printf("%.3f\n", value);
}
