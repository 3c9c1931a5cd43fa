// "precision": "fp64": every f32 of a model is f64, in data, parameters, steps, weights files and predictions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "graphrun/elements.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "graphrun/verify.h"
#include "graphrun/weights.h"
#include "kernels/cpu/cpu_kernels.h"
#include "support/source_folder.h"

namespace graphrun {
namespace {

using Overrides = std::vector<std::pair<std::string, std::string>>;

// Written with numbers that f32 rounds: data, initial values, constants and attributes.
constexpr const char* kWideSmall = R"js({"format": 1,
  "data": {"train": {"inline": {"x": [[0.1, -0.7], [0.3, 0.2], [-0.4, 0.9], [0.8, 0.6]], "y": [0.3, -0.1, 0.7, 0.2]}},
           "validation": {"inline": {"x": [[0.5, 0.5]], "y": [0.1]}}},
  "inputs": {"x": ["batch", 2], "y": ["batch"]},
  "parameters": {"W": {"shape": [2, 2], "init": [[0.1, 0.2], [0.3, -0.4]]}, "v": {"shape": [2], "init": [0.7, -0.3]}},
  "graph": ["h = tanh(x @ W)", "z = sum(h * v, axis=1)", "loss = mean(square(z - y)) + 0.01 * sum(square(v))"],
  "outputs": {"z": "y"},
  "train": {"precision": "fp64", "minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}, "epochs": 3}})js";

Model wide_small(const Overrides& overrides = {}) {
  LoadOptions options;
  options.text = std::make_shared<std::optional<std::string>>(kWideSmall);
  options.overrides = overrides;
  return load_model("<small>", options);
}

Model wide_example(const std::string& path, Overrides overrides = {}) {
  LoadOptions options;
  options.overrides = std::move(overrides);
  options.overrides.insert(options.overrides.begin(), {"train.precision", "fp64"});
  return load_model(source_folder() + "/" + path, options);
}

SessionOptions run_on(const std::string& executor, int threads = 0) {
  SessionOptions options;
  options.executor = executor;
  options.threads = threads;
  return options;
}

struct TrainedByHand {
  std::vector<double> weights;
  double loss = 0;
};

// The model of kWideSmall, written out in double.
TrainedByHand by_hand(int steps) {
  const double x[4][2] = {{0.1, -0.7}, {0.3, 0.2}, {-0.4, 0.9}, {0.8, 0.6}}, y[4] = {0.3, -0.1, 0.7, 0.2};
  double W[2][2] = {{0.1, 0.2}, {0.3, -0.4}}, v[2] = {0.7, -0.3};
  TrainedByHand result;
  for (int step = 0; step < steps; ++step) {
    double dW[2][2] = {}, dv[2] = {0.02 * v[0], 0.02 * v[1]};
    result.loss = 0.01 * (v[0] * v[0] + v[1] * v[1]);
    for (int r = 0; r < 4; ++r) {
      double h[2], z = 0;
      for (int j = 0; j < 2; ++j) z += (h[j] = std::tanh(x[r][0] * W[0][j] + x[r][1] * W[1][j])) * v[j];
      const double d = 2 * (z - y[r]) / 4;
      result.loss += (z - y[r]) * (z - y[r]) / 4;
      for (int j = 0; j < 2; ++j) {
        dv[j] += d * h[j];
        for (int i = 0; i < 2; ++i) dW[i][j] += d * v[j] * (1 - h[j] * h[j]) * x[r][i];
      }
    }
    for (int j = 0; j < 2; ++j) {
      v[j] -= 0.1 * dv[j];
      for (int i = 0; i < 2; ++i) W[i][j] -= 0.1 * dW[i][j];
    }
  }
  result.weights = {W[0][0], W[0][1], W[1][0], W[1][1], v[0], v[1]};
  return result;
}

TEST(DoublePrecision, TrainsAsByHand) {
  const TrainedByHand expected = by_hand(3);
  for (const char* executor : {"ref", "cpu"}) {
    Session session(wide_small(), run_on(executor));
    const TrainResult result = session.train();
    std::vector<double> weights = as_doubles(session.read("W"));
    const HostTensor v = session.read("v");
    ASSERT_EQ(v.dtype(), DType::f64);
    weights.insert(weights.end(), v.elements<double>().begin(), v.elements<double>().end());
    for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], expected.weights[i], 2e-16) << executor;
    EXPECT_NEAR(result.losses.back(), expected.loss, 1e-7 * expected.loss);  // rings are f32
  }
}

TEST(DoublePrecision, TrainsTheExampleModels) {
  for (const char* name : {"models/xor", "models/peaks", "models/gan", "models/linear_regression", "models/digits",
                           "examples/physics/heat", "examples/physics/heat_inverse"}) {
    const std::string path = std::string(name) + ".json";
    Session cpu(wide_example(path, {{"train.epochs", "2"}}), run_on("cpu")),
        ref(wide_example(path, {{"train.epochs", "2"}}), run_on("ref"));
    const double loss = cpu.train().losses.back(), expected = ref.train().losses.back();
    EXPECT_NEAR(loss, expected, 1e-6 * std::abs(expected)) << name;
    for (const Buffer& buffer : cpu.program().buffers) {
      if (buffer.kind != BufferKind::parameter) continue;
      EXPECT_EQ(buffer.type.dtype, DType::f64) << name << ": " << buffer.name;
      const std::vector<double> got = as_doubles(cpu.read(buffer.name)), wanted = as_doubles(ref.read(buffer.name));
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-9) << name << ": " << buffer.name;
    }
  }
}

// Instruction sets and threads do not affect a training.
TEST(DoublePrecision, GivesTheSameBitsEverywhere) {
  const char* const set = std::getenv("GRAPHRUN_ISA");
  const std::string before = set == nullptr ? "" : set;
  for (const char* name : {"models/digits.json", "models/peaks.json", "models/forecast.json",
                           "examples/physics/heat.json", "examples/fitting/sinc.json"}) {
    std::string first;
    for (const Isa isa : available_isas()) {
      setenv("GRAPHRUN_ISA", std::string(name_of(isa)).c_str(), 1);
      for (const int threads : {1, 2, 3}) {
        Session session(wide_example(name, {{"train.epochs", "1"}}), run_on("cpu", threads));
        session.train();
        if (first.empty()) first = session.weights_hash();
        EXPECT_EQ(session.weights_hash(), first) << name << " on " << name_of(isa) << ", " << threads << " threads";
      }
    }
  }
  set == nullptr ? unsetenv("GRAPHRUN_ISA") : setenv("GRAPHRUN_ISA", before.c_str(), 1);
}

// Whole steps are one region over rows, as in fp32. Random samples are f32 in both.
TEST(DoublePrecision, TrainsInRegions) {
  for (const char* name :
       {"models/xor.json", "models/peaks.json", "models/forecast.json", "models/gan.json", "examples/physics/heat.json",
        "examples/physics/burgers.json", "examples/fitting/sinc.json", "examples/fitting/pendulum.json"}) {
    const Session session(wide_example(name), run_on("cpu"));
    const Phase& train = session.program().phases[0];
    const auto over_rows = std::ranges::count_if(train.regions, [](const Region& r) { return r.chains.empty(); });
    EXPECT_EQ(over_rows, 1) << name;
    const Session narrow(wide_example(name, {{"train.precision", "fp32"}}), run_on("cpu"));
    EXPECT_EQ(train.regions.size(), narrow.program().phases[0].regions.size()) << name;
  }
}

// Ops without a kernel for f64 in tiles run alone, and the plan names them.
TEST(DoublePrecision, NamesTheOpsOutsideOfRegions) {
  const Session session(wide_example("models/digits.json"), run_on("cpu"));
  const std::vector<std::string>& notes = session.fusion().notes;
  EXPECT_TRUE(std::ranges::any_of(notes, [](const std::string& note) {
    return note.find("a cut: cpu: no kernel runs 'argmax' of f64 over tiles") != std::string::npos;
  }));
}

// Batches that fill no vector, as many rows as a vector of doubles has, and more partitions than rows.
TEST(DoublePrecision, TrainsAnyNumberOfRows) {
  for (const char* rows : {"2", "7", "8", "9", "16", "23", "24", "200", "1000"}) {
    const Overrides overrides = {
        {"data.train.grid.u", std::string("[-1,0.9,") + rows + "]"}, {"train.epochs", "3"}, {"train.optimizer", "sgd"}};
    Session cpu(wide_example("examples/fitting/sinc.json", overrides), run_on("cpu")),
        ref(wide_example("examples/fitting/sinc.json", overrides), run_on("ref"));
    cpu.train();
    ref.train();
    for (const char* name : {"W", "b"}) {
      const std::vector<double> got = as_doubles(cpu.read(name)), wanted = as_doubles(ref.read(name));
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-13) << rows << " rows: " << name;
    }
  }
}

TEST(DoublePrecision, Verifies) {
  for (const char* executor : {"ref", "cpu"}) {
    VerifyOptions options;
    options.executor = executor;
    EXPECT_TRUE(verify(wide_small(), options).passed()) << executor;
    EXPECT_TRUE(verify(wide_example("examples/fitting/sinc.json"), options).passed()) << executor;  // saturated units
  }
}

// Initial values are the same f32 numbers, so that both precisions start from one point.
TEST(DoublePrecision, StartsFromTheSamePoint) {
  LoadOptions options;
  const std::string path = source_folder() + "/models/xor.json";
  Session narrow(load_model(path, options), run_on("cpu")), wide(wide_example("models/xor.json"), run_on("cpu"));
  EXPECT_EQ(as_doubles(narrow.read("h.W")), as_doubles(wide.read("h.W")));
}

TEST(DoublePrecision, PredictsInDouble) {
  Session session(wide_small(), run_on("cpu"));
  const std::vector<double> row = {0.1, -0.7};
  const HostTensor x = from_doubles(row, {DType::f64, {1, 2}, 0});
  const HostTensor z = session.predict({{"x", x}});
  ASSERT_EQ(z.dtype(), DType::f64);
  const double wanted = std::tanh(0.1 * 0.1 + -0.7 * 0.3) * 0.7 - std::tanh(0.1 * 0.2 + -0.7 * -0.4) * 0.3;
  EXPECT_NEAR(z.elements<double>()[0], wanted, 1e-16);
  double to = 0;
  const std::span<const std::byte> in = x.bytes();
  const std::span<std::byte> out = std::as_writable_bytes(std::span(&to, 1));
  session.predict({&in, 1}, {&out, 1});  // rows have the type of the input
  EXPECT_EQ(to, z.elements<double>()[0]);
  EXPECT_EQ(session.predict({{"x", from_doubles(row, {DType::f32, {1, 2}, 0})}}).dtype(), DType::f64);
}

TEST(DoublePrecision, WeightsFilesHoldDoubles) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "double_precision";
  std::filesystem::create_directories(folder);
  for (const char* name : {"w.npz", "w.safetensors"}) {
    const std::string path = (folder / name).string(), narrow = (folder / ("f32_" + std::string(name))).string();
    Session session(wide_small(), run_on("cpu"));
    session.train();
    save_weights(session, path);
    Session again(wide_small(), run_on("cpu"));
    load_weights(again, path);
    EXPECT_EQ(again.weights_hash(), session.weights_hash()) << name;

    Session f32(wide_small({{"train.precision", "fp32"}}), run_on("cpu"));
    try {
      load_weights(f32, path);
      ADD_FAILURE() << name << " was read by a model in fp32";
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostics().front().code, "weights.precision") << name;
    }
    f32.train();
    save_weights(f32, narrow);
    load_weights(again, narrow);
    EXPECT_EQ(as_doubles(again.read("W")), as_doubles(f32.read("W"))) << name;
  }
}

TEST(DoublePrecision, IsRejectedWithTheReason) {
  try {
    (void)plan_program(wide_small(), run_on("cuda"));
    ADD_FAILURE() << "cuda planned f64";
  } catch (const Error& error) {
    EXPECT_NE(error.diagnostics().front().message.find("f64"), std::string::npos);
    EXPECT_NE(error.diagnostics().front().hint.find("--executor=cpu"), std::string::npos);
  }
}

}  // namespace
}  // namespace graphrun
