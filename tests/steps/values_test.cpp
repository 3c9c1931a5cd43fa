// What random graphs keep away from: values that are not finite, counts of rows that are wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/compile.h"
#include "compiler/regions.h"
#include "executors/ref/ref_executor.h"
#include "graph/builder.h"
#include "graph/ops/make.h"
#include "session/verify/compare.h"
#include "steps/emulated_executor.h"
#include "support/tensors.h"

namespace graphrun::test {
namespace {

using ir::NodeId;
using List = std::vector<std::int64_t>;

constexpr std::int64_t kRows = 70;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

enum class Parts { none, together, wait };

// x (rows, features), with a count of rows of its own.
struct Extremes {
  ir::Graph graph;
  NodeId x = ir::kNoNode, count = ir::kNoNode;
  std::vector<NodeId> results;

  explicit Extremes(std::int64_t features, Parts parts = Parts::none) {
    ir::Builder make(graph);
    graph.phases.push_back({"test", kRows, ir::kNoNode});
    make.enter(0);
    count = make.add("input", {}, {{"dtype", std::string("i32")}, {"shape", List{}}});
    graph.phases[0].row_count = count;
    x = make.add("input", {}, {{"shape", List{kRows, features}}, {"rows", std::int64_t{1}}});
    const NodeId twice = make.add("add", {x, x});
    if (parts != Parts::none) {
      add_parts(make, features, parts == Parts::wait);
      return;
    }
    for (const char* op : {"sum", "prod", "max", "min"}) {
      results.push_back(make.add(op, {x}, {{"axes", List{0}}}));
      results.push_back(make.add(op, {twice}));
      results.push_back(make.add(op, {twice}, {{"axes", List{1}}}));
    }
    for (const char* op : {"softmax", "log_softmax"}) results.push_back(make.add(op, {x}, {{"axis", std::int64_t{1}}}));
    results.push_back(make.add("logsumexp", {x}, {{"axes", List{1}}}));
    for (const char* op : {"argmax", "argmin"}) results.push_back(make.add(op, {x}, {{"axis", std::int64_t{1}}}));
    for (const NodeId result : results) graph[result].keep = true;
  }

  // Sums over rows of four products of parts that a concat joins, one of which is kept. With `waits`, one of them waits
  // for a sum over rows: then no region has both, and products read rows in memory.
  void add_parts(ir::Builder& make, std::int64_t features, bool waits) {
    const auto joined = [&](const std::vector<NodeId>& parts) {
      return make.add("concat", parts, {{"axis", std::int64_t{1}}});
    };
    const auto product = [&](NodeId left, NodeId right) {
      const auto each = [&](NodeId joint) { return make::reshape({&make, joint}, {4 * kRows, features}).id; };
      results.push_back(make.add("matmul", {each(left), each(right)}, {{"transpose_a", true}}));
    };
    std::vector<NodeId> parts{x};
    for (const char* op : {"square", "tanh", "neg"}) parts.push_back(make.add(op, {parts.back()}));
    const NodeId left = joined(parts);
    product(left, joined({parts[2], x, x, parts[1]}));
    const NodeId total = make.add("sum", {x});
    for (NodeId& part : parts) part = make.add("mul", {part, total});
    if (waits) product(left, joined(parts));
    if (waits) product(left, left);
    results.push_back(left);
    results.push_back(total);
    for (const NodeId result : results) graph[result].keep = true;
  }
};

std::vector<HostTensor> values(const Extremes& of, Executor& executor, const HostTensor& x, std::int32_t count,
                               std::uint32_t* groups = nullptr) {
  const Target& target = find_target(executor.default_target());
  RegionOptions regions;
  regions.only_if_it_saves = false;
  regions.plan = [&](const RegionSignature& region) { return executor.region_choices(region, target); };
  const Regions found = find_regions(of.graph, regions);
  EXPECT_EQ(found.graph.regions.empty(), executor.name() == "ref");
  CompileOptions options;
  options.name = "extremes";
  options.target = target.name;
  options.supports = [&](const StepSignature& step) { return executor.supports(step, target); };
  options.plan_region = regions.plan;
  const Compiled compiled = compile(found.graph, options);
  for (const Region& region : compiled.program.phases[0].regions)
    if (groups != nullptr) *groups = std::max(*groups, std::get<StepTiling>(region.tiling).groups);
  const auto runnable = executor.load(compiled.program);
  runnable->write(compiled.buffer(found.ids[of.x]), x.bytes());
  runnable->write(compiled.buffer(found.ids[of.count]), std::as_bytes(std::span(&count, 1)));
  runnable->run(0, 2);
  std::vector<HostTensor> all;
  for (const NodeId node : of.results) {
    HostTensor& tensor = all.emplace_back(of.graph[node].type.dtype, of.graph[node].type.shape);
    runnable->read(compiled.buffer(found.ids[node]), tensor.bytes());
  }
  return all;
}

// Tells in how many groups the warps were.
std::uint32_t expect_like_ref(const HostTensor& x, std::int32_t count, const Blocks& shape, const std::string& what,
                              std::optional<RowTile> tile = {}, Parts parts = Parts::none) {
  std::uint32_t groups = 0;
  const Extremes of(x.shape()[1], parts);
  EmulationOptions options;
  options.blocks = shape;
  options.tile = tile;
  RefExecutor ref;
  EmulatedExecutor emulated(options);
  const std::vector<HostTensor> want = values(of, ref, x, count), got = values(of, emulated, x, count, &groups);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::vector<double> a = to_doubles(got[i]), b = to_doubles(want[i]);
    for (std::size_t e = 0; e < a.size(); ++e)
      EXPECT_LE(distance_of(a[e], b[e]), 1e-5 * std::max(1.0, std::fabs(b[e])))
          << what << ", " << of.graph[of.results[i]].name << " [" << e << "] is " << a[e] << ", not " << b[e];
  }
  return groups;
}

TEST(StepKernelValues, ThatAreNotFiniteAreTheReferences) {
  for (const Blocks& shape : {Blocks{32, 1, 1}, Blocks{32, 2, 2}}) {
    for (const double odd : {kNaN, kInfinity, -kInfinity, -0.0}) {
      for (const std::size_t at : {0u, 65u, 137u}) {
        HostTensor x = random_tensor(DType::f32, {kRows, 2}, 0.9, 1.1, "x");
        x.elements<float>()[at] = static_cast<float>(odd);
        x.elements<float>()[90] = static_cast<float>(odd);
        expect_like_ref(x, kRows, shape, "with " + std::to_string(odd) + " at " + std::to_string(at));
      }
    }
  }
}

TEST(StepKernelValues, AreThoseOfTheRowsThatThereAre) {
  for (const std::int32_t count : {0, 1, 31, 33, 69, 70, 71, 1000, -1}) {
    HostTensor x = random_tensor(DType::f32, {kRows, 2}, 0.9, 1.1, "x");
    clear_rows(x, 1, std::min<std::int64_t>(std::max(count, 0), kRows));
    for (const Blocks& shape : {Blocks{32, 1, 1}, Blocks{32, 2, 2}})
      expect_like_ref(x, count, shape, std::to_string(count) + " rows");
  }
}

// Parts of one feature, of some in every lane, and in blocks of eight.
TEST(StepKernelValues, OfSumsOfPartsAreTheReferences) {
  for (const std::int64_t features : {1, 3, 6, 20, 24})
    for (const std::int32_t count : {45, 70}) {
      HostTensor x = random_tensor(DType::f32, {kRows, features}, 0.9, 1.1, "x");
      clear_rows(x, 1, count);
      for (const Parts parts : {Parts::together, Parts::wait})
        expect_like_ref(x, count, {64, 2, 2}, fmt::format("{} features", features), RowTile::warp, parts);
    }
}

// Sums, products, largest and smallest of 40 features: more than a thread has registers for, so groups of warps share
// them out.
TEST(StepKernelValues, OfGroupsOfWarpsAreCombinedEachInItsOwnWay) {
  const HostTensor x = random_tensor(DType::f32, {kRows, 40}, 0.9, 1.1, "x");
  for (const Blocks& shape : {Blocks{32, 1, 1}, Blocks{32, 2, 2}}) {
    EXPECT_GT(expect_like_ref(x, kRows, shape, "in groups", RowTile::thread), 1u);
  }
}

}  // namespace
}  // namespace graphrun::test
