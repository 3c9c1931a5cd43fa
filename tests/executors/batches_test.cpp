// How samples fall into batches, and that a model's graph is made once and compiled with any batch.
#include "graphrun/batches.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/frontend/builder_impl.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "session/compiling/fit_batch.h"
#include "support/temporary_folder.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

TEST(Batches, CountWhatAnEpochSees) {
  EXPECT_EQ((Batches{11, 4, false}.count()), 3);
  EXPECT_EQ((Batches{11, 4, true}.count()), 2);
  EXPECT_EQ((Batches{11, 4, false}.samples()), 11);
  EXPECT_EQ((Batches{11, 4, true}.samples()), 8);
  EXPECT_EQ((Batches{3, 4, false}.count()), 1);
  EXPECT_EQ((Batches{3, 4, true}.count()), 0);
  EXPECT_EQ((Batches{11, 0, false}.count()), 0) << "of an unknown batch";
  EXPECT_TRUE((Batches{12, 4, false}.all_full()));
  EXPECT_TRUE((Batches{11, 4, true}.all_full()));
  EXPECT_FALSE((Batches{11, 4, false}.all_full()));
  EXPECT_FALSE((Batches{3, 4, true}.all_full())) << "there is none";
  const Batches batches{11, 4, false};
  const std::int64_t rows[] = {4, 4, 3, 4, 4, 3};
  for (std::uint64_t step = 0; step < 6; ++step) EXPECT_EQ(batches.at(step), rows[step]) << step;
  EXPECT_EQ((Batches{11, 4, true}.at(2)), 4);
}

// As wide as one of the batches is long, with what mentions the batch: reshapes, draws, means, an epoch's steps.
std::string model_text(std::int64_t rows, const std::string& batch, const std::string& metrics = R"("rmse")") {
  return fmt::format(R"json({{
    "format": 1,
    "data": {{"train": {{"random": {{"rows": {}, "columns": {{"a": {{"normal": 1, "shape": [7]}},
                                                          "b": {{"uniform": [0, 1]}}}}}},
                       "x": ["a"], "y": ["b"]}}}},
    "inputs": {{"x": ["batch", 7], "y": ["batch", 1]}},
    "graph": [
      {{"name": "h", "op": "dense", "inputs": ["x"], "units": 7, "activation": "tanh"}},
      {{"name": "t", "op": "reshape", "inputs": ["h"], "shape": [-1, 1, 7]}},
      {{"name": "m", "op": "mean", "inputs": ["t"], "axis": [1]}},
      {{"name": "p", "op": "dense", "inputs": ["m"], "units": 1}},
      "loss = mean(square(p - y))",
      "coupled = sum(y / mean(square(x)))"
    ],
    "outputs": {{"p": "y"}},
    "train": {{"minimize": "loss", "metrics": [{}], "batch": {}, "epochs": 2, "log_every": 1, "seed": 3,
              "optimizer": {{"sgd": {{"lr": {{"cosine": {{"from": 0.0, "to": 0.0, "epochs": 2}}}}}}}}}}
  }})json",
                     rows, metrics, batch);
}

Model model_of(std::int64_t rows, const std::string& batch, const std::string& metrics = R"("rmse")") {
  const test::TemporaryFolder folder;
  return load_model(folder.write("model.json", model_text(rows, batch, metrics)));
}

std::uint32_t builders_so_far() {
  return GraphBuilder(1).impl().number;
}

TEST(Batches, ATrainingBuildsItsModelOnceAndCompilesOnce) {
  const test::TemporaryFolder folder;
  for (const std::string in_file : {"\"all\"", "5", "7"}) {
    const std::string path = folder.write("model.json", model_text(21, in_file));
    for (const std::string asked : {"", "all", "1", "4", "7", "21"}) {
      LoadOptions options;
      if (!asked.empty()) options.overrides = {{"train.batch", asked}};
      const std::uint32_t builders = builders_so_far();
      const std::uint64_t before = compilations();
      Session session(load_model(path, options));
      session.train();
      EXPECT_EQ(builders_so_far() - builders, 2u) << "one for the model, one to count; " << in_file << " " << asked;
      EXPECT_EQ(compilations() - before, 1u) << in_file << " " << asked;
    }
  }
}

// The learning rate is 0, so that the loss of an epoch is that of all rows, whatever the batch.
TEST(Batches, NoBatchIsSpecial) {
  constexpr std::int64_t kRows = 8192;
  for (const char* executor : {"cpu", "ref"}) {
    SessionOptions options;
    options.executor = executor;
    double all = std::nan("");
    for (const std::int64_t batch : {8192, 8191, 4096, 7, 1}) {
      if (batch < 7 && options.executor == "ref") continue;  // 16384 steps of it take long
      Session session(model_of(kRows, std::to_string(batch)), options);
      std::vector<double> losses;
      const TrainResult result = session.train([&](const Report& report) { losses.push_back(report.loss); });
      EXPECT_EQ(result.steps, static_cast<std::uint64_t>(2 * ((kRows + batch - 1) / batch))) << batch;
      if (std::isnan(all)) all = losses.at(0);
      for (const double loss : losses) EXPECT_NEAR(loss, all, 1e-5 * all) << executor << " in batches of " << batch;
      EXPECT_NEAR(session.evaluate("train").loss, all, 1e-5 * all) << executor << " in batches of " << batch;
      EXPECT_EQ(session.predict({{"x", HostTensor(DType::f32, {1, 7})}}).shape(), Shape({1, 1})) << batch;
    }
  }
}

// One step graph, and a capacity for each phase.
TEST(Batches, AnEvaluationMayHaveAnotherCapacity) {
  const Model model = model_of(21, "7");
  StepGraph step = build_step_graph(model);
  ASSERT_EQ(step.phases.size(), 3u);
  const std::shared_ptr<Executor> cpu = find_executor("cpu");
  const Target& target = find_target("host");
  CompileOptions options;
  options.name = "capacities";
  options.target = "host";
  options.simplify = true;
  options.supports = [&](const StepSignature& signature) { return cpu->supports(signature, target); };
  Session expected(model_of(21, "7"));
  const double loss = expected.evaluate("train").loss;
  for (const std::int64_t capacity : {21, 8, 1, 30}) {
    options.capacities = {7, capacity, 2};
    CompiledModel compiled{compile(step.graph, options), step, {}};
    EXPECT_EQ(compiled.program.phases[0].capacity, 7);
    EXPECT_EQ(compiled.program.phases[1].capacity, capacity);
    EXPECT_EQ(compiled.program.phases[2].capacity, 2);
    const std::unique_ptr<Runnable> runnable = cpu->load(compiled.program);
    write_start(model, compiled, {runnable.get()});
    const Batches batches{21, capacity, false};
    runnable->run(1, static_cast<std::uint64_t>(batches.count()));
    const BufferId ring = compiled.buffer(step.phases[1].recorded[0].ring);
    ASSERT_EQ(compiled.program.buffers[ring].type.shape, Shape({batches.count()}));
    HostTensor records(DType::f32, {batches.count()});
    runnable->read(ring, records.bytes());
    double sum = 0;
    for (std::int64_t i = 0; i < batches.count(); ++i) {
      const auto at = static_cast<std::uint64_t>(i);
      sum += static_cast<double>(records.elements<float>()[at]) * static_cast<double>(batches.at(at));
    }
    EXPECT_NEAR(sum / 21, loss, 1e-6 * loss) << capacity;
  }
}

TEST(Batches, FittingCompilesTheSameGraph) {
  const std::shared_ptr<Executor> cpu = find_executor("cpu");
  const Model model = model_of(64, "64");
  const CompiledModel compiled = compile_model(model, {&cpu, 1}, {});
  const std::uint32_t builders = builders_so_far();
  const std::uint64_t before = compilations();
  const FittingBatch fitting = fit_batch(compiled.step, model, {&cpu, 1}, {}, compiled.program.arena_bytes - 1);
  EXPECT_TRUE(fitting.fits);
  EXPECT_LT(fitting.batch, 64);
  EXPECT_LE(compilations() - before, 6u) << "32 and halves of what is left";
  EXPECT_EQ(builders_so_far() - builders, 1u) << "none but those that count";
  EXPECT_EQ(model.graph.batch(), 64);
  const std::string fits = std::to_string(fitting.batch);
  EXPECT_EQ(compile_model(model_of(64, fits), {&cpu, 1}, {}).program.arena_bytes, fitting.arena_bytes);
}

// A smaller batch would be refused for the metric.
TEST(Batches, NoSmallerOneIsSuggestedThanAMetricNeeds) {
  const std::shared_ptr<Executor> cpu = find_executor("cpu");
  const Model model = model_of(64, "64", R"("coupled")");
  const CompiledModel compiled = compile_model(model, {&cpu, 1}, {});
  const FittingBatch fitting = fit_batch(compiled.step, model, {&cpu, 1}, {}, compiled.program.arena_bytes - 1);
  EXPECT_FALSE(fitting.fits);
  EXPECT_EQ(fitting.batch, 64);
  try {
    compile_model(model_of(64, "63", R"("coupled")"), {&cpu, 1}, {});
    FAIL() << "it depends on the batches";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "metric.batches");
  }
}

TEST(Batches, AnUnknownBatchIsNotCompiled) {
  const test::TemporaryFolder folder;
  LoadOptions options;
  options.data = DataUse::none;
  const std::string path =
      folder.write("model.json", R"json({"format": 1, "data": {"train": {"csv": "none.csv", "x": ["a"], "y": ["b"]}},
        "inputs": {"x": ["batch", 1], "y": ["batch", 1]}, "graph": ["p = x * w", "loss = mean(square(p - y))"],
        "parameters": {"w": {"shape": [1], "init": "zeros"}}, "outputs": {"p": "y"}, "train": {"minimize": "loss", "optimizer": {"sgd": {"lr": 0.1}}}})json");
  const Model model = load_model(path, options);
  EXPECT_EQ(model.graph.batch(), 0);
  EXPECT_EQ(to_string(model.graph.type(model.graph.find("p"))), "f32(batch, 1)");
  try {
    plan_program(model);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "batch.unknown");
  }
}

}  // namespace
}  // namespace graphrun
