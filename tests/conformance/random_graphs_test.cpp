// Seeded random graphs over the registry. Each executor against ref, step by step from equal inputs. On ref, bitwise:
// with passes against without, and the whole graph against its ops one at a time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>

#include "compiler/compile.h"
#include "graph/builder.h"
#include "graph/verifier.h"
#include "graphrun/op.h"
#include "session/verify/compare.h"
#include "support/graph_run.h"
#include "support/mutant_executor.h"
#include "support/passes.h"
#include "support/random_graph.h"
#include "support/rounds.h"
#include "support/seed.h"

namespace graphrun::test {
namespace {

using ir::NodeId;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kSeeds = 300;

// Runs one Program on two executors.
class StepByStep {
 public:
  StepByStep(const RandomGraph& random, const std::shared_ptr<Executor>& candidate)
      : reference_executor_(executor("ref")) {
    CompileOptions options;
    options.name = "random";
    options.target = std::string(candidate->default_target());
    const Target& target = find_target(options.target);
    options.supports = [&](const StepSignature& step) {
      Support a = candidate->supports(step, target);
      const Support b = reference_executor_->supports(step, target);
      if (a.yes && !b.yes) return b;
      a.workspace_bytes = std::max(a.workspace_bytes, b.workspace_bytes);
      return a;
    };
    Compiled lowered = compile(random.graph, options);
    program_ = std::move(lowered.program);
    check(program_);
    candidate_ = candidate->load(program_);
    reference_ = reference_executor_->load(program_);
    scale_ = reference_executor_->load(program_);
    for (const auto& [node, tensor] : random.inputs) {
      for (Runnable* runnable : {candidate_.get(), reference_.get()}) {
        runnable->write(lowered.buffer(node), tensor.bytes());
      }
    }
  }

  // Returns "" or a description of the first incorrect step.
  std::string difference() {
    for (std::uint32_t i = 0; i < program_.phases[0].steps.size(); ++i) {
      std::string text = run_step(program_.phases[0].steps[i], i);
      if (!text.empty()) return text;
    }
    return {};
  }

 private:
  Bytes read(Runnable& runnable, BufferId id) const {
    Bytes bytes(program_.buffers[id].bytes);
    runnable.read(id, bytes);
    return bytes;
  }

  std::string run_step(const Step& step, std::uint32_t index) {
    const Buffer& output = program_.buffers[step.output];
    const Agreement rule = agreement_of(step.op);
    const bool scaled = rule == Agreement::scaled && is_float(output.type.dtype);
    std::vector<BufferId> inputs = step.inputs;
    if (step.row_count != kNoBuffer) inputs.push_back(step.row_count);
    bool in_place = false;
    for (const BufferId id : inputs) {
      Bytes bytes = read(*reference_, id);
      candidate_->write(id, bytes);
      in_place = in_place || program_.buffers[id].storage == output.storage;
      const DType dtype = program_.buffers[id].type.dtype;
      if (scaled && is_float(dtype)) {  // absolute values: clear the sign bit
        for (std::size_t i = size_of(dtype); i <= bytes.size(); i += size_of(dtype)) bytes[i - 1] &= std::byte{0x7f};
      }
      if (scaled) scale_->write(id, bytes);
    }
    // Overwrite the output, so that a step which does nothing is detected.
    if (!in_place) candidate_->write(step.output, Bytes(output.bytes, std::byte{0xff}));
    candidate_->run_steps(0, index, index + 1);
    reference_->run_steps(0, index, index + 1);
    if (scaled) scale_->run_steps(0, index, index + 1);

    const Bytes got = read(*candidate_, step.output), expected = read(*reference_, step.output);
    const Bytes scale = scaled ? read(*scale_, step.output) : Bytes();
    const Sides sides{output.type, got, expected, rule, scale};
    for (std::size_t i = 0; i < sides.elements(); ++i) {
      if (sides.agrees(i)) continue;
      return fmt::format("{} ({}, step {}) differs at [{}]: {} is not {} of ref, the tolerance is {:.3g}\n{}",
                         step.name, name_of(step.op), index + 1, fmt::join(index_of(output.type.shape, i), ", "),
                         element_text(output.type.dtype, got, i), element_text(output.type.dtype, expected, i),
                         sides.tolerance(i), neighbourhood(sides, i, "candidate", "ref"));
    }
    return {};
  }

  std::shared_ptr<Executor> reference_executor_;
  Program program_;
  std::unique_ptr<Runnable> candidate_, reference_, scale_;
};

// The kept values by name after one step on ref.
std::map<std::string, HostTensor> kept_values(const RandomGraph& random, const ir::Graph& graph) {
  std::map<std::string, NodeId> by_name;
  for (NodeId id = 0; id < graph.size(); ++id) by_name.emplace(graph[id].name, id);
  GraphRun run(graph, executor("ref"));
  for (const auto& [node, tensor] : random.inputs) {
    const auto found = by_name.find(random.graph[node].name);  // a pass may remove an input without readers
    if (found != by_name.end()) run.write(found->second, tensor);
  }
  run.run();
  std::map<std::string, HostTensor> values;
  for (const auto& [node, tensor] : random.kept) {
    const std::string& name = random.graph[node].name;
    const auto found = by_name.find(name);
    if (found != by_name.end()) values.emplace(name, run.read(found->second));
  }
  return values;
}

std::string unequal(const HostTensor& a, const HostTensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return "another type";
  const std::size_t width = size_of(a.dtype());
  for (std::size_t i = 0; i < a.bytes().size(); ++i) {
    if (a.bytes()[i] == b.bytes()[i]) continue;
    return fmt::format("element {} is {} and {}", i / width, element_text(a.dtype(), a.bytes(), i / width),
                       element_text(b.dtype(), b.bytes(), i / width));
  }
  return {};
}

// Runs the graph, which may be a rewritten one; returns "" or the first difference of values.
std::string other_bits(const RandomGraph& random, const ir::Graph& graph) {
  const std::map<std::string, HostTensor> values = kept_values(random, graph);
  for (const auto& [node, expected] : random.kept) {
    const std::string& name = random.graph[node].name;
    const auto found = values.find(name);
    if (found == values.end()) return name + " is gone";
    if (std::string text = unequal(found->second, expected); !text.empty()) return name + ": " + text;
  }
  return {};
}

// The executor's name and the part of the seeds; parts keep each test short.
class RandomGraphs : public ::testing::TestWithParam<std::tuple<const char*, std::uint64_t>> {};
constexpr std::uint64_t kParts = 6;

TEST_P(RandomGraphs, AgreeWithRefStepByStep) {
  const auto& [name, part] = GetParam();
  for (const auto& [missing, why] : executors().missing) {
    if (missing == name) GTEST_SKIP() << name << ": " << why;
  }
  const auto& present = executors().present;
  if (std::none_of(present.begin(), present.end(),
                   [&, n = std::string_view(name)](const auto& e) { return e.first == n; })) {
    GTEST_SKIP() << name << " is not in this build";
  }
  const std::shared_ptr<Executor> candidate = executor(name);
  const std::uint64_t seeds = cases(kSeeds);
  for (std::uint64_t seed = part; seed < seeds; seed += kParts) {
    const AtSeed at{seed};
    const RandomGraph random = random_graph(seed, *candidate);
    std::string wrong;
    try {
      verify(random.graph);
      wrong = StepByStep(random, candidate).difference();
      if (wrong.empty()) wrong = other_bits(random, random.graph);
      if (wrong.empty()) {
        const ir::Graph after = run_passes(random.graph);
        verify(after);
        wrong = other_bits(random, after);
        if (!wrong.empty()) wrong += "\nafter the passes:\n" + ir::to_string(after);
      }
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    if (!wrong.empty()) {
      FAIL() << "seed " << seed << ", " << random.samples << " samples in the batch: " << wrong << "\n"
             << ir::to_string(random.graph);
    }
  }
}

std::string test_name(const ::testing::TestParamInfo<std::tuple<const char*, std::uint64_t>>& info) {
  return fmt::format("{}_{}", std::get<0>(info.param), std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Executors, RandomGraphs,
                         ::testing::Combine(::testing::Values("cpu", "cuda"),
                                            ::testing::Range(std::uint64_t{0}, kParts)),
                         test_name);

// Proves that the comparison can fail: corrupts one element of one step, which must be named.
TEST(RandomGraphComparison, AWrongStepIsFoundAndNamed) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Mutation mutation;
    mutation.pick = [&](const Program& program, const Step& step) {
      const Buffer& output = program.buffers[step.output];
      return output.type.dtype == DType::f32 && output.bytes > 0 && (seed % 2 == 0 || step.op != Op::minibatch);
    };
    mutation.after = [](const Hands& hands) {
      hands.change_output([](std::vector<float>& values) { values[0] += 1e-3F * (2 + std::fabs(values[0])) * 50; });
    };
    const auto mutant = std::make_shared<MutantExecutor>(executor("cpu"), mutation);
    const AtSeed at{seed};
    const RandomGraph random = random_graph(seed, *mutant);
    try {
      const std::string text = StepByStep(random, mutant).difference();
      EXPECT_EQ(text.rfind(mutant->victim().name + " (" + std::string(name_of(mutant->victim().op)), 0), 0U)
          << seed << ": " << text;
      ++found;
    } catch (const std::logic_error&) {
      continue;  // no such step in this graph
    }
  }
  EXPECT_GE(found, 20);
}

// ---- the generator itself

TEST(RandomGraphGenerator, GivesTheSameGraphForTheSameSeed) {
  const auto text = [](std::uint64_t seed) { return ir::to_string(random_graph(seed, *executor("ref")).graph); };
  EXPECT_EQ(text(7), text(7));
  EXPECT_NE(text(7), text(8));
}

TEST(RandomGraphGenerator, CoversTheRegistry) {
  if (is_too_slow()) GTEST_SKIP() << "counts what is drawn, as builds without a sanitizer do in a tenth of the time";
  std::map<std::string_view, int> uses;
  int partial = 0, short_batches = 0, largest = 0, smallest = 1000;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const AtSeed at{seed};
    const RandomGraph random = random_graph(seed, *executor("ref"));
    for (const ir::Node& node : random.graph.nodes) ++uses[name_of(node.op)];
    const ir::Phase& phase = random.graph.phases[0];
    partial += phase.row_count != ir::kNoNode;
    short_batches += random.samples < phase.capacity;
    largest = std::max(largest, static_cast<int>(random.graph.size()));
    smallest = std::min(smallest, static_cast<int>(random.graph.size()));
  }
  for (const OpDef& op : all_ops()) {
    if (op.state != nullptr || is_left_out(op.name())) continue;
    EXPECT_GE(uses[op.name()], 5) << op.name() << " hardly comes up: does the generator draw operands that it takes?";
  }
  EXPECT_GT(partial, 60);
  EXPECT_GT(short_batches, 30);
  EXPECT_LE(smallest, 8);
  EXPECT_GE(largest, 38);
  EXPECT_LE(largest, 40);
}

}  // namespace
}  // namespace graphrun::test
