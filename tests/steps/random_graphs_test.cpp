// Random graphs whose regions are step kernels, run by the emulator: each value against the reference's from the same
// inputs, and the values of a graph that keeps few against those of one that keeps all.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "graphrun/op.h"
#include "steps/emulated_executor.h"
#include "steps/host_kernels.h"
#include "steps/region_case.h"
#include "support/rounds.h"
#include "support/seed.h"

namespace graphrun::test {
namespace {

// Few threads, in every kind of exchange; with 150 samples each has several rows.
constexpr Blocks kShapes[] = {{32, 1, 1}, {32, 2, 2}, {64, 1, 1}, {32, 1, 3}, {32, 4, 1}, {96, 1, 1}, {32, 4, 3}};
constexpr RowTile kGraphTiles[] = {RowTile::thread, RowTile::warp, RowTile::block, RowTile::pair};
constexpr std::int64_t kBatches[] = {6, 40, 150};

std::uint64_t graphs() {
  return step_graphs(all_cases() ? 1000 : cases(30));
}

struct Pair {
  std::uint64_t seed = 0;
  std::shared_ptr<EmulatedExecutor> executor;
  std::unique_ptr<RegionCase> some, all;
};

TEST(StepKernelsOfRandomGraphs, AgreeWithTheReference) {
  std::map<std::string, int> declined;
  std::set<std::string_view> in_regions, ops;
  std::vector<Pair> pairs;
  std::size_t run = 0, by_warps = 0, by_blocks = 0, by_pairs = 0;
  const auto finish = [&] {
    std::vector<std::string> texts;
    for (const Pair& pair : pairs)
      for (const RegionCase* one : {pair.some.get(), pair.all.get()})
        std::ranges::copy(pair.executor->texts(one->program()), std::back_inserter(texts));
    compile_steps(texts);
    for (const Pair& pair : pairs) {
      const AtSeed at{pair.seed};
      std::string wrong;
      try {
        pair.some->run(1 + pair.seed % 3);
        pair.all->run(1 + pair.seed % 2);
        wrong = pair.all->compare_steps();
        if (wrong.empty()) wrong = pair.some->compare_kept();
      } catch (const std::exception& error) {
        wrong = error.what();
      }
      EXPECT_EQ(wrong, "") << "seed " << pair.seed << "\n" << to_string(pair.some->regions());
      if (!wrong.empty() && std::getenv("GRAPHRUN_SHOW_KERNELS") != nullptr)
        for (const RegionCase* one : {pair.some.get(), pair.all.get()})
          fmt::print("{}\n{}\n", fmt::join(pair.executor->texts(one->program()), "\n"), to_string(one->program()));
      ++run;
      by_warps += pair.all->has(RowTile::warp) ? 1 : 0;
      by_blocks += pair.all->has(RowTile::block) ? 1 : 0;
      by_pairs += pair.all->has(RowTile::pair) ? 1 : 0;
    }
    pairs.clear();
  };
  for (std::uint64_t seed = first_step_graph(); seed < first_step_graph() + graphs(); ++seed) {
    const AtSeed at{seed};
    EmulationOptions options;
    options.blocks = kShapes[seed % std::size(kShapes)];
    options.schedule = seed;
    options.tile = kGraphTiles[seed / std::size(kShapes) % std::size(kGraphTiles)];
    const auto executor = std::make_shared<EmulatedExecutor>(options);
    const RandomGraph random = random_graph(seed, *executor, kBatches[seed % std::size(kBatches)]);
    Pair pair{seed, executor, std::make_unique<RegionCase>(random, executor, RegionCase::Keep::some),
              std::make_unique<RegionCase>(random, executor, RegionCase::Keep::all)};
    for (const auto& [why, times] : pair.some->declined()) declined[why] += times;
    for (const Step& step : pair.some->program().phases[0].steps) ops.insert(name_of(step.op));
    if (!pair.some->has_regions() && !pair.all->has_regions()) continue;
    for (const RegionCase* one : {pair.some.get(), pair.all.get()}) one->add_ops(in_regions);
    pairs.push_back(std::move(pair));
    if (pairs.size() == 20) finish();
  }
  finish();
  EXPECT_GE(run, graphs() / 3);
  EXPECT_GE(by_warps, graphs() / 15);
  EXPECT_GE(by_blocks, graphs() / 25);
  EXPECT_GE(by_pairs, graphs() / 25);
  for (const std::string_view op : in_regions) ops.erase(op);
  if (!all_cases()) return;
  fmt::print("{} graphs with regions; never in one: {}\n", run, fmt::join(ops, " "));
  for (const auto& [why, times] : declined) fmt::print("{:5}  {}\n", times, why);
}

}  // namespace
}  // namespace graphrun::test
