// Fits y = x @ W + b to eight rows through the installed library and prints the loss before and after.
#include <graphrun/error.h>
#include <graphrun/graph_builder.h>
#include <graphrun/session.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

int main() {
  using namespace graphrun;
  constexpr std::int64_t kRows = 8;
  const std::array<float, 2 * kRows> x = {0, 0, 0, 1, 1, 0, 1, 1, -1, 0, 0, -1, -1, 1, 1, -1};
  std::array<float, kRows> y{};
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[2 * i] - 3 * x[2 * i + 1] + 0.5f;

  try {
    GraphBuilder graph(kRows);
    graph.input("x", {kBatch, 2});
    graph.input("y", {kBatch, 1});
    graph.parameter("W", {2, 1});
    graph.parameter("b", {1});
    const Value prediction = graph.expression("prediction = x @ W + b");
    const Value loss = graph.expression("loss = mean((prediction - y) * (prediction - y))");

    Model model(std::move(graph));
    model.name = "plane";
    model.outputs = {{prediction, "prediction", "y"}};
    model.train.minimize = loss;
    model.train.optimizer = {"sgd", {{"lr", 0.1}}};
    model.train.epochs = 50;
    model.data.splits = {{"train", {{"x", HostTensor({kRows, 2}, x)}, {"y", HostTensor({kRows, 1}, y)}}}};

    const Program plan = plan_program(model);
    Session session(std::move(model));
    if (!(plan == session.program()) || !(plan.buffers[0].type.shape == session.program().buffers[0].type.shape)) {
      std::fprintf(stderr, "two plans of one model differ\n");
      return 1;
    }
    const TrainResult result = session.train();
    std::printf("loss: %.6f before, %.6f after %lld epochs\n", result.losses.front(), session.evaluate("train").loss,
                static_cast<long long>(result.epochs));

    const HostTensor weights = session.read("W");
    const std::span<const float> w = weights.elements<float>();
    std::printf("W: %.3f %.3f\n", w[0], w[1]);
    return std::abs(w[0] - 2) < 0.05f && std::abs(w[1] + 3) < 0.05f ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
