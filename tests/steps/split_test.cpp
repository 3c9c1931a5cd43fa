// Networks with wide data and narrow layers, drawn at random, with split tiles: each step and each region against the
// reference, many steps of one launch beside as many launches of one. Layers, losses, optimizers, batches of one or
// several turns, in order and shuffled, partial; slices that are unequal or empty, copied 4, 2 or 1 number at a time.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "graphrun/session.h"
#include "graphrun/verify.h"
#include "steps/emulated_executor.h"
#include "support/rounds.h"
#include "support/seed.h"
#include "support/temporary_folder.h"

namespace graphrun::test {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  template <class T>
  T of(std::initializer_list<T> list) {
    return list.begin()[random_() % list.size()];
  }

 private:
  std::mt19937_64 random_;
};

std::string network(Draw& draw) {
  const int features = draw.of({5, 12, 30, 48, 67, 90, 132}), outputs = draw.of({1, 3, 10, 17});
  std::vector<std::string> graph;
  std::string last = "x";
  for (int layers = draw.of({0, 0, 1, 2}), i = 0; i < layers; ++i) {
    const std::string name = fmt::format("h{}", i);
    graph.push_back(fmt::format(R"({{"name": "{}", "op": "dense", "inputs": ["{}"], "units": {}, "activation": "{}"}})",
                                name, last, draw.of({1, 6, 16, 31}),
                                draw.of<const char*>({"relu", "tanh", "sigmoid", "gelu"})));
    last = name;
  }
  graph.push_back(fmt::format(R"({{"name": "out", "op": "dense", "inputs": ["{}"], "units": {}}})", last, outputs));
  graph.emplace_back(outputs > 1
                         ? draw.of<const char*>({R"json("loss = mean(square(out - y))")json",
                                                 R"json("loss = mean(softmax_cross_entropy(out, softmax(y)))")json"})
                         : R"json("loss = mean(square(out - y))")json");
  const int rows = draw.of({40, 75, 150});
  return fmt::format(
      R"({{"format": 1, "data": {{"train": {{"random": {{"rows": {}, "seed": 3, "columns":
      {{"a": {{"normal": 1, "shape": [{}]}}, "b": {{"normal": 1, "shape": [{}]}}}}}}, "x": ["a"], "y": ["b"]}}}},
      "inputs": {{"x": ["batch", {}], "y": ["batch", {}]}}, "graph": [{}], "outputs": {{"out": "y"}},
      "train": {{"minimize": "loss", "optimizer": {}, "epochs": 1, "batch": {}, "shuffle": {}, "math": "{}"}}}})",
      rows, features, outputs, features, outputs, fmt::join(graph, ", "),
      draw.of<const char*>(
          {R"({"sgd": {"lr": 0.1}})", R"({"adam": {"lr": 0.01}})", R"({"momentum": {"lr": 0.05, "momentum": 0.9}})"}),
      draw.of({rows, rows / 2, 31}), draw.of<const char*>({"true", "false"}), draw.of<const char*>({"fast", "exact"}));
}

TEST(SplitTiles, AgreeWithTheReference) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "network.json").string();
  const std::uint64_t wanted = cases(3, 200);
  for (std::uint64_t seed = 0; seed < wanted; ++seed) {
    const AtSeed at{seed};
    Draw draw(seed);
    const std::string text = network(draw);
    std::ofstream(path) << text;
    EmulationOptions how;
    how.tile = RowTile::split;
    how.schedule = seed;
    how.blocks = Blocks{draw.of({32u, 64u, 160u}), draw.of({2u, 2u, 4u, 8u}), draw.of({1u, 2u, 3u})};
    VerifyOptions options;
    options.custom_executor = std::make_shared<EmulatedExecutor>(how);
    options.steps = 3;
    const Model model = load_model(path);
    SessionOptions session;
    session.custom_executor = options.custom_executor;
    const Program program = plan_program(model, session);
    ASSERT_EQ(program.phases.at(0).regions.size(), 1u) << text;
    EXPECT_EQ(std::get<StepTiling>(program.phases[0].regions[0].tiling).tile, RowTile::split) << text;
    const VerifyReport report = verify(model, options);
    EXPECT_TRUE(report.passed()) << text << "\n" << (report.difference ? to_string(*report.difference) : "");
  }
}

}  // namespace
}  // namespace graphrun::test
