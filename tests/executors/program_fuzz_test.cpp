// program_fuzz_test.cpp: mutated Programs on the host executors, in one process: an Error or a run, nothing else.
// The short run is part of the tests; the long one: GRAPHRUN_FUZZ=100000 test_executors --gtest_filter='ProgramFuzz*'.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "executors/common/load_check.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "support/graph_run.h"
#include "support/program_mutator.h"
#include "support/random_graph.h"
#include "support/rounds.h"
#include "support/seed.h"

namespace graphrun {
namespace {

constexpr std::uint64_t kMaxBytes = 16 << 20;  // that are allocated and run through

// A classifier with a batch that does not divide, dropout, a shuffle: most kinds of steps, in regions and alone.
Model classifier(std::int64_t batch, std::int64_t rows, bool shuffle) {
  GraphBuilder graph(batch);
  graph.input("x", {kBatch, 4});
  graph.input("c", {kBatch}, DType::i32);
  graph.name(graph.dense("hidden", graph.find("x"), 8, "tanh"), "h");
  graph.expression("d = dropout(h, rate=0.25)");
  graph.name(graph.dense("out", graph.find("d"), 3), "logits");
  const Value loss = graph.expression("loss = mean(softmax_cross_entropy(logits, c))");
  Model model(std::move(graph));
  model.name = "classifier";
  model.outputs = {{model.graph.find("logits"), "logits", ""}};
  model.train.minimize = loss;
  model.train.optimizer.name = "adam";
  model.train.shuffle = shuffle;
  model.data.splits = {{"train", {{"x", HostTensor(DType::f32, {rows, 4})}, {"c", HostTensor(DType::i32, {rows})}}},
                       {"test", {{"x", HostTensor(DType::f32, {5, 4})}, {"c", HostTensor(DType::i32, {5})}}}};
  return model;
}

Model regression(std::int64_t batch, std::int64_t rows) {
  GraphBuilder graph(batch);
  graph.input("x", {kBatch, 3});
  graph.input("y", {kBatch, 1});
  const Value p = graph.dense("p", graph.find("x"), 1);
  graph.name(p, "prediction");
  const Value loss = graph.expression("loss = mean((prediction - y) ^ 2)");
  Model model(std::move(graph));
  model.name = "regression";
  model.outputs = {{model.graph.find("prediction"), "prediction", "y"}};
  model.train.minimize = loss;
  model.train.metrics = {{"mae", {}}};
  model.data.splits = {{"train", {{"x", HostTensor(DType::f32, {rows, 3})}, {"y", HostTensor(DType::f32, {rows, 1})}}}};
  return model;
}

std::vector<Program> sound_programs() {
  std::vector<Program> programs;
  for (const bool fuse : {true, false}) {
    SessionOptions options;
    options.fuse = fuse;
    programs.push_back(plan_program(classifier(16, 40, false), options));
    programs.push_back(plan_program(classifier(7, 20, true), options));
    programs.push_back(plan_program(regression(32, 64), options));
    programs.push_back(plan_program(regression(100, 100), options));
    programs.push_back(plan_program(regression(50, 20), options));
  }
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const test::AtSeed at{seed};
    const test::RandomGraph random = test::random_graph(seed, *test::executor("cpu"));
    programs.push_back(test::lower_for(random.graph, *test::executor("cpu")).program);
    programs.push_back(test::lower_for(random.graph, *test::executor("cpu"), ElementLimits{1, 4, 8, 20, 4}).program);
  }
  return programs;
}

void run_all(Executor& executor, const Program& program) {
  const std::unique_ptr<Runnable> runnable = executor.load(program);
  for (PhaseId phase = 0; phase < program.phases.size(); ++phase) {
    runnable->run(phase, 3);
    if (program.phases[phase].regions.empty()) {
      runnable->run_steps(phase, 0, static_cast<std::uint32_t>(program.phases[phase].steps.size()));
    }
  }
}

bool is_moderate(const Program& program) {
  std::uint64_t most = program.arena_bytes;
  for (const Phase& phase : program.phases) {
    for (const Region& region : phase.regions) {
      if (const auto* tiling = std::get_if<HostTiling>(&region.tiling))
        most = std::max({most, tiling->tile_bytes, tiling->accumulator_bytes * 16});
    }
  }
  return most <= kMaxBytes;
}

TEST(ProgramFuzz, SoundProgramsRun) {
  for (const Program& program : sound_programs()) run_all(*test::executor("cpu"), program);
}

TEST(ProgramFuzz, AMutantEndsInAnErrorOrRuns) {
  const std::vector<Program> sound = sound_programs();
  const std::shared_ptr<Executor> executors[] = {find_executor("cpu"), find_executor("ref")};
  for (const auto& executor : executors) executor->set_threads(1);
  const int n = test::rounds(2000);
  int ran = 0, rejected = 0;
  for (int i = 0; i < n; ++i) {
    SCOPED_TRACE(i);
    std::mt19937_64 random(static_cast<std::uint64_t>(i));
    Program program = sound[static_cast<std::size_t>(i) % sound.size()];
    test::mutate(program, random);
    for (const auto& executor : executors) {
      try {
        if (is_moderate(program)) {
          run_all(*executor, program);
        } else {
          check_loadable(program, *executor);
        }
        ++ran;
      } catch (const Error&) {
        ++rejected;
      } catch (const std::exception& error) {
        ADD_FAILURE() << executor->name() << ": " << error.what();
      }
    }
    if (n > 10000 && (i + 1) % 10000 == 0) std::cout << i + 1 << " mutants, " << ran << " runs\n" << std::flush;
  }
  EXPECT_GT(ran, n / 20);
  EXPECT_GT(rejected, n / 2);
}

}  // namespace
}  // namespace graphrun
