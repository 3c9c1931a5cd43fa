// Regions on the host: fused against plain on seeded random graphs, step by step from equal inputs: values with rows to
// the bit, reductions over rows within the op's tolerance.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <span>

#include "compiler/compile.h"
#include "compiler/passes.h"
#include "compiler/regions.h"
#include "executors/cpu/cpu_executor.h"
#include "graph/builder.h"
#include "graph/verifier.h"
#include "graphrun/partial_results.h"
#include "kernels/cpu/cpu_kernels.h"
#include "session/verify/compare.h"
#include "support/graph_run.h"
#include "support/guards.h"
#include "support/passes.h"
#include "support/random_graph.h"
#include "support/rounds.h"
#include "support/seed.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

using ir::NodeId;
using Extents = std::vector<std::int64_t>;
using Bytes = std::vector<std::byte>;

const std::uint64_t kSeeds = cases(100, 500);
constexpr std::uint64_t kParts = 5;
constexpr std::int64_t kLargestBatch = 40;

Regions fused(const ir::Graph& graph, const Executor& executor) {
  const Target& target = find_target("host");
  RegionOptions options;
  options.plan = [&](const RegionSignature& region) { return executor.region_choices(region, target); };
  options.only_if_it_saves = false;
  Regions regions = find_regions(graph, options);
  regions.graph = fuse(std::move(regions.graph), options);
  verify(regions.graph);
  return regions;
}

// A graph on an executor, its values by name. Regions have `sets` of partial results, or as few as they can do with.
constexpr std::uint64_t kAllSets = std::numeric_limits<std::uint64_t>::max();
class OneRun {
 public:
  OneRun(const ir::Graph& graph, Executor& executor, plan::TileChoice tiles = {}, std::uint64_t sets = kAllSets) {
    const Target& target = find_target("host");
    CompileOptions options;
    options.name = "random";
    options.target = "host";
    options.tiles = tiles;
    options.plan_region = [&](const RegionSignature& region) { return executor.region_choices(region, target); };
    options.supports = [&](const StepSignature& step) {
      Support support = executor.supports(step, target);
      support.workspace_bytes = std::max(support.workspace_bytes, CpuExecutor().supports(step, target).workspace_bytes);
      return support;
    };
    Compiled lowered = compile(graph, options);
    program_ = std::move(lowered.program);
    for (NodeId id = 0; id < graph.size(); ++id) buffers_[graph[id].name] = lowered.buffer(id);
    for (const Region& region : program_.phases[0].regions) {
      const auto* tiling = std::get_if<HostTiling>(&region.tiling);
      if (tiling == nullptr || region.accumulators == kNoBuffer || sets == kAllSets) continue;
      Buffer& accumulators = program_.buffers[region.accumulators];
      accumulators.bytes = tiling->accumulator_bytes * std::max(sets, min_sets(tiling->partitions));
      accumulators.type.shape = {static_cast<std::int64_t>(accumulators.bytes)};
    }
    runnable_ = executor.load(program_);
    for (BufferId id = 0; id < program_.buffers.size(); ++id) {
      const Buffer& buffer = program_.buffers[id];
      if (buffer.storage == id && !is_state(buffer.kind) && buffer.kind != BufferKind::tile)
        runnable_->write(id, guard_pattern(buffer.offset, buffer.bytes));
    }
  }
  void write(const std::string& name, const Bytes& bytes) { runnable_->write(buffers_.at(name), bytes); }
  void write_inputs(const RandomGraph& random) {
    for (const auto& [node, tensor] : random.inputs)
      write(random.graph[node].name, Bytes(tensor.bytes().begin(), tensor.bytes().end()));
  }
  Bytes read(const std::string& name) const {
    const BufferId id = buffers_.at(name);
    Bytes bytes(program_.buffers[id].type.bytes());
    runnable_->read(id, bytes);
    return bytes;
  }
  const Program& program() const { return program_; }
  Runnable& runnable() { return *runnable_; }

 private:
  Program program_;
  std::map<std::string, BufferId> buffers_;
  std::unique_ptr<Runnable> runnable_;
};

Bytes absolute(const Buffer& buffer, Bytes bytes) {
  if (is_float(buffer.type.dtype)) {
    const std::size_t width = size_of(buffer.type.dtype);
    for (std::size_t i = width; i <= bytes.size(); i += width) bytes[i - 1] &= std::byte{0x7f};
  }
  return bytes;
}

ir::Graph with_everything_kept(ir::Graph graph) {
  for (ir::Node& node : graph.nodes) node.keep = node.keep || node.def->state == nullptr;
  return graph;
}

// "" or which step of the fused run is not what the plain step makes of the same inputs.
std::string compare_steps(const ir::Graph& kept, const OneRun& whole, const RandomGraph& random) {
  CpuExecutor cpu;
  OneRun plain(kept, cpu), scale(kept, *executor("ref"));
  plain.write_inputs(random);
  scale.write_inputs(random);
  const std::vector<Step>& steps = plain.program().phases[0].steps;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const auto& buffers = plain.program().buffers;
    const Buffer& output = buffers[step.output];
    const bool scaled = output.type.rows == 0 && is_float(output.type.dtype);
    std::vector<BufferId> inputs = step.inputs;
    if (step.row_count != kNoBuffer) inputs.push_back(step.row_count);
    for (const BufferId input : inputs) {
      const Bytes bytes = whole.read(buffers[input].name);
      plain.runnable().write(input, bytes);
      scale.runnable().write(input, absolute(buffers[input], bytes));
    }
    plain.runnable().run_steps(0, i, i + 1);
    scale.runnable().run_steps(0, i, i + 1);
    const Bytes got = whole.read(output.name);
    const Bytes expected = plain.read(output.name);
    const Agreement rule = output.type.rows > 0 ? Agreement::exact : agreement_of(step.op);
    const Bytes scales = scaled && rule == Agreement::scaled ? scale.read(output.name) : Bytes();
    const Sides sides{output.type, got, expected, rule, scales};
    for (std::size_t e = 0; e < sides.elements(); ++e) {
      if (sides.agrees(e)) continue;
      return fmt::format("{} ({}) [{}]: fused {}, plain {}, tolerance {:.3g}\n{}", step.name, name_of(step.op),
                         fmt::join(index_of(output.type.shape, e), ", "), element_text(output.type.dtype, got, e),
                         element_text(output.type.dtype, expected, e), sides.tolerance(e),
                         neighbourhood(sides, e, "fused", "plain"));
    }
  }
  return {};
}

// Values that are kept in both.
std::string other_bits(const RandomGraph& random, const OneRun& a, const OneRun& b) {
  for (const auto& [node, tensor] : random.kept) {
    const std::string& name = random.graph[node].name;
    if (a.read(name) != b.read(name)) return name + " has other bits";
  }
  return {};
}

class RegionsOfRandomGraphs : public ::testing::TestWithParam<std::uint64_t> {};

void expect_as_plain_steps(std::uint64_t first_seed, DType real) {
  CpuExecutor cpu;
  std::size_t regions = 0, stages = 0;
  for (std::uint64_t seed = first_seed; seed < kSeeds; seed += kParts) {
    const AtSeed at{seed};
    const RandomGraph random = random_graph(seed, cpu, kLargestBatch, real);
    const Regions some = fused(random.graph, cpu);
    const ir::Graph unfused = with_everything_kept(random.graph);
    const Regions all = fused(unfused, cpu);
    regions += some.graph.regions.size();
    for (const ir::Region& region : some.graph.regions) stages = std::max(stages, region.stages.size());
    for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{7}, random.graph.phases[0].capacity}) {
      for (const std::int32_t partitions : {1, 3}) {
        std::string wrong;
        try {
          OneRun kept(all.graph, cpu, {rows, partitions}), sparse(some.graph, cpu, {rows, partitions});
          OneRun fewer(some.graph, cpu, {rows, partitions}, 1);  // sets of partial results
          for (OneRun* run : {&kept, &sparse, &fewer}) {
            run->write_inputs(random);
            run->runnable().run(0, 1);
          }
          wrong = compare_steps(unfused, kept, random);
          if (wrong.empty()) wrong = other_bits(random, kept, sparse);
          if (wrong.empty()) wrong = other_bits(random, sparse, fewer);
        } catch (const std::exception& error) {
          wrong = error.what();
        }
        ASSERT_TRUE(wrong.empty()) << "seed " << seed << ", tiles of " << rows << " rows, " << partitions
                                   << " partitions: " << wrong << "\n"
                                   << to_string(some);
      }
    }
  }
  EXPECT_GE(regions, kSeeds / kParts * (real == DType::f32 ? 9 : 8) / 10);
  EXPECT_GE(stages, kSeeds < 500 ? 1u : 2u);  // few of them have two
}

TEST_P(RegionsOfRandomGraphs, AgreeWithPlainSteps) {
  expect_as_plain_steps(GetParam(), DType::f32);
}

TEST_P(RegionsOfRandomGraphs, AgreeWithPlainStepsInDouble) {
  expect_as_plain_steps(GetParam(), DType::f64);
}

// ---- accumulate(halves) = whole

// All that the arena holds goes from one runnable of a program to another.
void copy_values(const Program& program, Runnable& from, Runnable& to) {
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (buffer.storage != id || buffer.kind == BufferKind::tile) continue;
    Bytes bytes(buffer.bytes);
    from.read(id, bytes);
    to.write(id, bytes);
  }
}

BufferId append(Program& program, Buffer buffer) {
  const auto id = static_cast<BufferId>(program.buffers.size());
  buffer.storage = id;
  buffer.offset = program.arena_bytes;
  program.arena_bytes += (buffer.bytes + kAlignment - 1) / kAlignment * kAlignment;
  program.buffers.push_back(std::move(buffer));
  return id;
}

// The program with accumulators of region `r` that nothing else overwrites, and with this region over the first `rows`
// rows alone.
Program over_rows(Program program, std::size_t r, std::int32_t rows) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&rows);
  Buffer count{"rows", {DType::i32, {}, 0}, BufferKind::data};
  count.bytes = sizeof(rows);
  const BufferId counted = append(program, count);
  program.initial.push_back({counted, Bytes(bytes, bytes + sizeof(rows))});
  Phase& phase = program.phases[0];
  Region& region = phase.regions[r];
  region.accumulators = append(program, program.buffers[region.accumulators]);
  for (const Stage& stage : region.stages) {
    for (std::uint32_t i = stage.rows; i < stage.last; ++i) phase.steps[i].row_count = counted;
  }
  return program;
}

float combined(CombineOp op, float a, float b) {
  switch (op) {
    case CombineOp::sum:
      return a + b;
    case CombineOp::product:
      return a * b;
    case CombineOp::max:
      return std::max(a, b);
    case CombineOp::min:
      return std::min(a, b);
  }
  return std::numeric_limits<float>::quiet_NaN();
}

std::vector<float> floats(Runnable& runnable, BufferId buffer, std::uint64_t bytes) {
  std::vector<float> values(bytes / sizeof(float));
  runnable.read(buffer, std::as_writable_bytes(std::span(values)));
  return values;
}

// "" or what of region `r`, which has one stage and two partitions, is not the first half of its rows combined with the
// second. The first is what the region makes of those rows alone, the second is what the second partition has left.
std::string compare_halves(OneRun& whole, std::size_t r, std::int64_t samples, std::size_t& values) {
  CpuExecutor cpu;
  const Program& program = whole.program();
  const Region& region = program.phases[0].regions[r];
  const auto& tiling = std::get<HostTiling>(region.tiling);
  const std::int64_t tiles = (program.phases[0].capacity + tiling.tile_rows - 1) / tiling.tile_rows;
  const auto half = static_cast<std::int32_t>(std::min(tiles / 2 * tiling.tile_rows, samples));
  const Program apart = over_rows(program, r, static_cast<std::int32_t>(samples));
  const auto both = cpu.load(apart), first = cpu.load(over_rows(program, r, half));
  for (Runnable* runnable : {both.get(), first.get()}) {
    copy_values(program, whole.runnable(), *runnable);
    runnable->run_steps(0, region.first(), region.last);
  }
  const std::vector<float> partitions =
      floats(*both, apart.phases[0].regions[r].accumulators, 2 * tiling.accumulator_bytes);
  for (const Combine& combine : region.stages[0].combines) {
    const std::uint64_t bytes = program.buffers[combine.value].bytes;
    const std::vector<float> got = floats(*both, combine.value, bytes), begun = floats(*first, combine.value, bytes);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const float rest = partitions[(tiling.accumulator_bytes + combine.offset) / sizeof(float) + i];
      const float sum = combined(combine.op, begun[i], rest);
      ++values;
      if (got[i] == sum) continue;
      return fmt::format("{} [{}]: {}, of halves {} and {}: {}", program.buffers[combine.value].name, i, got[i],
                         begun[i], rest, sum);
    }
  }
  return {};
}

TEST_P(RegionsOfRandomGraphs, AddUpFromHalvesOfTheRows) {
  CpuExecutor cpu;
  std::size_t values = 0;
  for (std::uint64_t seed = GetParam(); seed < kSeeds; seed += kParts) {
    const AtSeed at{seed};
    const RandomGraph random = random_graph(seed, cpu, kLargestBatch);
    const Regions all = fused(with_everything_kept(random.graph), cpu);
    for (const std::int64_t rows : {1, 7}) {
      OneRun whole(all.graph, cpu, {rows, 2});
      whole.write_inputs(random);
      whole.runnable().run(0, 1);
      const std::vector<Region>& regions = whole.program().phases[0].regions;
      for (std::size_t r = 0; r < regions.size(); ++r) {
        if (regions[r].stages.size() != 1 || std::get<HostTiling>(regions[r].tiling).partitions != 2) continue;
        if (regions[r].accumulators == kNoBuffer) continue;  // nothing is reduced, or empty values only
        const std::string wrong = compare_halves(whole, r, random.samples, values);
        ASSERT_TRUE(wrong.empty()) << "seed " << seed << ", tiles of " << rows << " rows: " << wrong << "\n"
                                   << to_string(all);
      }
    }
  }
  EXPECT_GE(values, kSeeds / 25);
}

// x (rows, 3), w (3, 5): sum of tanh(x w) and x^T tanh(x w).
struct Halves {
  ir::Graph graph;
  NodeId x = ir::kNoNode, w = ir::kNoNode;

  Halves(std::int64_t rows, DType dtype) {
    ir::Builder make(graph);
    graph.phases.push_back({"train", rows, ir::kNoNode});
    make.enter(0);
    const std::string real(name_of(dtype));
    x = make.add("input", {}, {{"dtype", real}, {"shape", Extents{rows, 3}}, {"rows", std::int64_t{1}}});
    w = make.add("parameter", {}, {{"dtype", real}, {"shape", Extents{3, 5}}});
    const NodeId h = make.add("tanh", {make.add("matmul", {x, w})});
    const NodeId total = make.add("sum", {h}), dw = make.add("matmul", {x, h}, {{"transpose_a", true}});
    make.rename(total, "total");
    make.rename(dw, "dw");
    graph[total].keep = graph[dw].keep = true;
  }
};

// Rows [first, first + rows) of 96.
template <class Real>
std::vector<Real> reduced(std::int64_t first, std::int64_t rows, std::int32_t partitions, int threads,
                          std::int64_t tile_rows = 32, std::uint64_t sets = kAllSets) {
  const DType dtype = dtype_of<Real>();
  const Halves halves(rows, dtype);
  CpuExecutor cpu;
  cpu.set_threads(threads);
  const Regions regions = fused(halves.graph, cpu);
  OneRun run(regions.graph, cpu, {tile_rows, partitions}, sets);
  const HostTensor x = random_tensor(dtype, {96, 3}, -2, 2, "x");
  const HostTensor w = random_tensor(dtype, {3, 5}, -1, 1, "w");
  constexpr std::size_t kRow = 3 * sizeof(Real);
  const auto part = x.bytes().subspan(static_cast<std::size_t>(first) * kRow, static_cast<std::size_t>(rows) * kRow);
  run.write(halves.graph[halves.x].name, Bytes(part.begin(), part.end()));
  run.write(halves.graph[halves.w].name, Bytes(w.bytes().begin(), w.bytes().end()));
  run.runnable().run(0, 1);
  std::vector<Real> values;
  for (const char* name : {"total", "dw"}) {
    const Bytes bytes = run.read(name);
    const auto* numbers = reinterpret_cast<const Real*>(bytes.data());
    values.insert(values.end(), numbers, numbers + bytes.size() / sizeof(Real));
  }
  return values;
}

template <class Real>
class RegionContract : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RegionContract, Reals);

// Sink over parts of the rows, then Combine: the same bits as over all rows with a partition for each part.
TYPED_TEST(RegionContract, PartsOfTheRowsAddUpToTheWhole) {
  const std::vector<TypeParam> whole = reduced<TypeParam>(0, 64, 2, 1);
  const std::vector<TypeParam> first = reduced<TypeParam>(0, 32, 1, 1), second = reduced<TypeParam>(32, 32, 1, 1);
  ASSERT_EQ(whole.size(), 16u);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i], first[i] + second[i]) << i;
  EXPECT_NE(first, second);
  // One partition over both parts adds its lanes once, not tile by tile: the same but for rounding.
  const std::vector<TypeParam> one = reduced<TypeParam>(0, 64, 1, 1);
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_NEAR(one[i], whole[i], 1e-5f * std::fabs(whole[i]) + 1e-5f) << i;
}

TYPED_TEST(RegionContract, InstructionSetsDoNotChangeBits) {
  const char* const before = std::getenv("GRAPHRUN_ISA");
  const std::string saved = before != nullptr ? before : "";
  std::vector<TypeParam> plain;
  for (const Isa isa : available_isas()) {
    ::setenv("GRAPHRUN_ISA", std::string(name_of(isa)).c_str(), 1);
    const std::vector<TypeParam> values = reduced<TypeParam>(3, 85, 3, 1);
    if (plain.empty()) plain = values;
    EXPECT_EQ(values, plain) << name_of(isa);
  }
  if (before != nullptr) {
    ::setenv("GRAPHRUN_ISA", saved.c_str(), 1);
  } else {
    ::unsetenv("GRAPHRUN_ISA");
  }
}

TYPED_TEST(RegionContract, ThreadsDoNotChangeBits) {
  for (const std::int32_t partitions : {2, 3}) {
    const std::vector<TypeParam> one = reduced<TypeParam>(0, 96, partitions, 1);
    for (const int threads : {2, 3, 8})
      EXPECT_EQ(reduced<TypeParam>(0, 96, partitions, threads), one) << threads << " threads";
  }
}

// A binary counter of partial results adds the same pairs.
TYPED_TEST(RegionContract, FewerSetsOfPartialResultsDoNotChangeBits) {
  std::size_t runs = 0;
  for (std::int32_t partitions = 2; partitions <= 24; ++partitions) {
    const std::vector<TypeParam> all = reduced<TypeParam>(0, 96, partitions, 1, 4);
    for (std::uint64_t sets = min_sets(partitions); sets < static_cast<std::uint64_t>(partitions); ++sets) {
      for (const int threads : {1, 3}) {
        EXPECT_EQ(reduced<TypeParam>(0, 96, partitions, threads, 4, sets), all) << sets << " sets of " << partitions;
        ++runs;
      }
    }
  }
  EXPECT_GT(runs, 400u);
  EXPECT_NE(reduced<TypeParam>(0, 96, 8, 1, 4), reduced<TypeParam>(0, 96, 1, 1, 4)) << "the order shows";
}

// The partial results of a region have one type; steps of the other run one by one.
TEST(RegionSums, OfTwoTypesAreTwoRegions) {
  ir::Graph graph;
  ir::Builder make(graph);
  graph.phases.push_back({"train", 64, ir::kNoNode});
  make.enter(0);
  const NodeId x = make.add("input", {}, {{"shape", Extents{64, 3}}, {"rows", std::int64_t{1}}});
  const NodeId narrow = make.add("tanh", {x}),
               wide = make.add("tanh", {make.add("cast", {narrow}, {{"dtype", std::string("f64")}})});
  for (const NodeId id : {narrow, wide}) graph[make.add("sum", {id})].keep = true;
  const Regions regions = fused(graph, CpuExecutor());
  EXPECT_TRUE(regions.graph.regions.empty());
  ASSERT_EQ(regions.notes.size(), 1u);
  EXPECT_EQ(regions.notes[0].text, "region dissolved: sums over rows are both f32 and f64");
}

TEST(PartialResults, AsFewSetsAsABinaryCounterHasDigits) {
  EXPECT_EQ(min_sets(1), 1u);
  EXPECT_EQ(min_sets(2), 1u);
  EXPECT_EQ(min_sets(4), 2u);
  EXPECT_EQ(min_sets(64), 6u);
  for (std::int32_t partitions = 1; partitions <= 300; ++partitions) {
    EXPECT_EQ(largest_group(partitions, static_cast<std::uint64_t>(partitions)), partitions);
    EXPECT_EQ(largest_group(partitions, min_sets(partitions) - 1), 0);
    for (std::uint64_t sets = min_sets(partitions); sets <= static_cast<std::uint64_t>(partitions); ++sets)
      EXPECT_LE(sets_for(partitions, largest_group(partitions, sets)), sets) << partitions;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RegionsOfRandomGraphs, ::testing::Range(std::uint64_t{0}, kParts));

}  // namespace
}  // namespace graphrun::test
