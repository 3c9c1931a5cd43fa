// Random models that read their data sets in every way there is: directly, through reshapes of all kinds, in several
// stages, beside cuts, and given back as they are. Regions compute what plain steps do, and all of it can be planned.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "graphrun/session.h"
#include "support/rounds.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

// x is (batch, 4), v is (batch, 1), w is (batch). In place are read: products of x, anything of v and w.
const std::vector<std::string> kReaders = {
    "x @ A",
    "square(x)",
    "tanh(reshape(x, shape=[-1, 2, 2]))",
    "reshape(x, shape=[-1, 2]) @ B",
    "reshape(x, shape=[-1, 1]) * c",
    "reshape(reshape(x, shape=[-1, 2, 2]), shape=[-1, 4]) @ A",
    "sigmoid(reshape(reshape(x, shape=[-1, 2]), shape=[-1, 4]))",
    "x - mean(x, axis=0)",
    "reshape(x, shape=[-1, 2, 2]) - mean(reshape(x, shape=[-1, 2, 2]), axis=0)",
    "(x - mean(x @ A)) @ A",
    "logsumexp(x, axis=0)",
    "reshape(x, shape=[-1, 2, 2]) @ reshape(x, shape=[-1, 2, 2])",
    "transpose(reshape(x, shape=[-1, 2, 2]), axes=[0, 2, 1]) * c",
    "concat(x, v)",
    "slice(x, start=1, stop=3) * v",
    "softmax(x)",
    "max(x, axis=1)",
    "max(x, axis=0)",
    "x * v",
    "v @ D",
    "exp(c * v)",
    "reshape(v, shape=[-1, 1, 1]) * c",
    "reshape(w, shape=[-1, 1]) @ D",
    "w * c",
    "reshape(v, shape=[-1]) * w",
    "reshape(w, shape=[-1, 1]) - v",
    "w - mean(w)",
    "sum(x) * c",
    "sum(reshape(x, shape=[-1, 2])) * c",
};
const std::vector<std::string> kOutputs = {"x * c", "reshape(x, shape=[-1, 2, 2])", "reshape(v, shape=[-1])", "x @ A",
                                           "reshape(w, shape=[-1, 1, 1])"};

struct Random {
  std::mt19937_64 engine;
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine() % n); }
};

Model random_model(std::uint64_t seed) {
  Random random{std::mt19937_64(seed)};
  const std::int64_t sizes[] = {1, 3, 16, 20, 33, 48, 60, 64};
  const std::int64_t samples = sizes[random.below(std::size(sizes))];
  const bool all = random.below(2) == 0;
  const std::int64_t batch = all ? samples : std::min(samples, sizes[random.below(std::size(sizes))]);
  GraphBuilder graph(batch);
  graph.input("x", {kBatch, 4});
  graph.input("v", {kBatch, 1});
  graph.input("w", {kBatch});
  const auto start = [&](const char* name, const Shape& shape) {
    graph.parameter(name, shape, Init::values(random_tensor(DType::f32, shape, -1, 1, name)));
  };
  start("A", {4, 3});
  start("B", {2, 5});
  start("D", {1, 3});
  start("c", {});
  const std::size_t terms = 1 + random.below(5);
  for (std::size_t i = 0; i < terms; ++i) {
    graph.expression(fmt::format("t{} = {}", i, kReaders[random.below(kReaders.size())]));
    graph.expression(fmt::format("m{} = mean(square(t{})) + 0 * c", i, i));
  }
  std::string loss = "loss = m0";
  for (std::size_t i = 1; i < terms; ++i) loss += fmt::format(" + m{}", i);
  const Value minimize = graph.expression(loss);
  Model model(std::move(graph));
  model.name = fmt::format("readers {}", seed);
  for (const std::string& output : kOutputs) {
    if (random.below(3) == 0) {
      const std::string name = fmt::format("o{}", model.outputs.size());
      model.outputs.push_back({model.graph.expression(name + " = " + output), name, ""});
    }
  }
  model.train.minimize = minimize;
  model.train.optimizer = {"sgd", {{"lr", 1e-3}}, {}};
  model.train.epochs = 3;
  model.train.shuffle = random.below(4) == 0;
  model.train.drop_last = random.below(4) == 0;
  for (const char* name : {"train", "validation", "test"}) {
    const std::int64_t rows = std::string_view(name) == "train"        ? samples
                              : std::string_view(name) == "validation" ? batch
                                                                       : sizes[random.below(std::size(sizes))];
    Split split;
    split.name = name;
    split.columns.emplace_back("x", random_tensor(DType::f32, {rows, 4}, -1, 1, name));
    split.columns.emplace_back("v", random_tensor(DType::f32, {rows, 1}, -1, 1, name));
    split.columns.emplace_back("w", random_tensor(DType::f32, {rows}, -1, 1, name));
    if (split.name == "train" || random.below(2) == 0) model.data.splits.push_back(std::move(split));
  }
  return model;
}

std::string described(std::uint64_t seed) {
  const Model model = random_model(seed);
  std::string text = fmt::format("seed {}, batch {}", seed, model.graph.batch());
  for (const Split& split : model.data.splits) text += fmt::format(", {} {}", split.name, split.samples());
  return text + "\n" + model.graph.print();
}

void expect_near(double a, double b, const std::string& what) {
  EXPECT_NEAR(a, b, 2e-5 * std::max(std::fabs(b), 1.0)) << what;
}

void compare(std::uint64_t seed) {
  SessionOptions plain_steps;
  plain_steps.fuse = false;
  SessionOptions fused_steps;
  fused_steps.threads = 1;
  plain_steps.threads = 1;
  Session fused(random_model(seed), fused_steps), plain(random_model(seed), plain_steps);
  const TrainResult a = fused.train(), b = plain.train();
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) expect_near(a.losses[i], b.losses[i], fmt::format("step {}", i));
  for (const Split& split : plain.model().data.splits) {
    expect_near(fused.evaluate(split.name).loss, plain.evaluate(split.name).loss, split.name);
  }
  if (plain.model().outputs.empty()) return;
  for (const char* name : {"A", "B", "D", "c"}) {
    if (find_buffer(plain.program(), name) != kNoBuffer) fused.write(name, plain.read(name));
  }
  std::vector<std::pair<std::string, HostTensor>> inputs;
  for (const auto& [name, tensor] : plain.model().data.splits[0].columns) {
    if (find_buffer(plain.program(), "predict/" + name) != kNoBuffer) inputs.emplace_back(name, tensor);
  }
  if (inputs.empty()) return;
  const auto x = fused.predict_all(inputs), y = plain.predict_all(inputs);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(x[i].second.bytes(), y[i].second.bytes())) << x[i].first;
  }
}

TEST(DataReaders, RegionsComputeWhatPlainStepsDo) {
  const auto seeds = static_cast<std::uint64_t>(rounds(100, 300));
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    try {
      compare(seed);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    if (testing::Test::HasFailure()) FAIL() << described(seed);
  }
}

}  // namespace
}  // namespace graphrun::test
