// Mistakes planted in the text of a step kernel, or in the machine that runs it: each is noticed, as other bytes after
// three steps or as threads that wait for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "graphrun/session.h"
#include "session/compiling/compiled_model.h"
#include "steps/emulated_executor.h"
#include "steps/host_kernels.h"
#include "steps/states.h"
#include "support/rounds.h"
#include "support/source_folder.h"

namespace graphrun::test {
namespace {

using emulation::Fault;

constexpr Blocks kShape{32, 2, 2};

// 150 rows in batches of 100: the second has 50.
Model model_of(const std::string& shuffle) {
  LoadOptions options;
  options.overrides = {{"data.train.random.rows", "150"}, {"train.batch", "100"}, {"train.shuffle", shuffle}};
  return load_model(source_folder() + "/bench/models/realestate_1h.json", options);
}
const Model& in_order() {
  static const Model model = model_of("false");
  return model;
}
const Model& clipped() {
  static const Model model = [] {
    LoadOptions options;
    options.overrides = {{"data.train.random.rows", "150"}, {"train.batch", "100"}, {"train.clip_norm", "0.01"}};
    return load_model(source_folder() + "/bench/models/realestate_1h.json", options);
  }();
  return model;
}
const Model& shuffled() {
  static const Model model = model_of("true");
  return model;
}

// What is left after three steps of training, or what was wrong.
struct Left {
  std::vector<std::byte> bytes;
  std::string failure;
  friend bool operator==(const Left&, const Left&) = default;
};

CompiledModel compiled_for(const std::shared_ptr<Executor>& executor, const Model& model) {
  PlanOptions plan;
  plan.fuse = true;
  return compile_model(model, {&executor, 1}, plan);
}

// The kernels of all, which takes a fraction of the time of one after the other.
void compile_together(const std::vector<EmulationOptions>& all, const Model& model) {
  std::vector<std::string> texts;
  for (const EmulationOptions& options : all) {
    const auto executor = std::make_shared<EmulatedExecutor>(options);
    std::ranges::copy(executor->texts(compiled_for(executor, model).program), std::back_inserter(texts));
  }
  compile_steps(texts);
}

Left run(const EmulationOptions& options, const Model& model = in_order()) {
  const std::shared_ptr<Executor> executor = std::make_shared<EmulatedExecutor>(options);
  const CompiledModel compiled = compiled_for(executor, model);
  const auto runnable = executor->load(compiled.program);
  write_start(model, compiled, {runnable.get()});
  Left left;
  try {
    runnable->run(0, 3);
  } catch (const emulation::Failure& failure) {
    left.failure = failure.what();
    return left;
  }
  left.bytes = states_of(*runnable, compiled.program);
  return left;
}

const Left& right(RowTile tile) {
  static const Left left[] = {run({kShape, RowTile::thread}), run({kShape, RowTile::warp}),
                              run({kShape, RowTile::block}), run({kShape, RowTile::pair}),
                              run({kShape, RowTile::split})};
  return left[static_cast<std::size_t>(tile)];
}

// Whether under one of the schedules something is other than it should be.
bool is_noticed(EmulationOptions options, const Model& model = in_order(), std::uint64_t schedules = 20) {
  const Left expected = &model == &in_order() ? right(*options.tile) : run({kShape, options.tile}, model);
  for (options.schedule = 0; options.schedule < schedules; ++options.schedule)
    if (run(options, model) != expected) return true;
  return false;
}

struct Edit {
  std::string what, instead, why, after = {};
};

// The first place after `after` of the kernel of training.
EmulationOptions edited(const Edit& edit, RowTile tile) {
  EmulationOptions options{kShape, tile};
  options.edit = [edit](std::string& text) {
    if (text.find("gradient") == std::string::npos) return;
    const std::size_t from = text.find(edit.after), at = text.find(edit.what, from);
    if (from == std::string::npos || at == std::string::npos) throw std::logic_error("the text has no " + edit.what);
    text.replace(at, edit.what.size(), edit.instead);
  };
  return options;
}

void expect_noticed(RowTile tile, const std::vector<Edit>& edits, const Model& model = in_order()) {
  std::vector<EmulationOptions> all = {{kShape, tile}};
  for (const Edit& edit : edits) all.push_back(edited(edit, tile));
  compile_together(all, model);
  for (std::size_t i = 0; i < edits.size(); ++i) EXPECT_TRUE(is_noticed(all[i + 1], model)) << edits[i].why;
}

// The texts and the machine under them are compiled without sanitizers, which see nothing here that other tests of step
// kernels do not show them.
class StepKernelFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (is_too_slow()) GTEST_SKIP() << "takes minutes under a sanitizer: runs in builds without one";
  }
};

constexpr const char* kAtNight =
    "faults of threads, split tiles and norms stand for it: runs in scripts/test --nightly";

TEST_F(StepKernelFaults, NothingIsNoticedWithoutOne) {
  for (const RowTile tile : {RowTile::thread, RowTile::warp, RowTile::block, RowTile::pair, RowTile::split}) {
    EXPECT_EQ(right(tile).failure, "");
    EXPECT_FALSE(is_noticed(EmulationOptions{kShape, tile}, in_order(), all_cases() ? 20 : 3));
  }
}

TEST_F(StepKernelFaults, InTheTextAreNoticed) {
  expect_noticed(RowTile::thread,
                 {{"    barrier();\n  }\n", "  }\n", "the barrier at a step's end"},
                  {"  barrier();\n  for (u32 epoch", "  for (u32 epoch", "the barrier before the first step"},
                  {"for_rows<100u, 128u, 1, true, true>(first_row, rows_of",
                   "for_rows<100u, 128u, 1, true, true>(first_row, 1u + rows_of", "one row too many"},
                  {"run(epoch)", "run(epoch - 1)", "the epoch before"},
                  {"run(epoch)", "run(1)", "always the same epoch"},
                  {"block_index() * 32u", "(block_index() | 1u) * 32u", "another block's rows"},
                  {"add_product<", "add_product<1 + ", "the place of another sum"},
                  {"start<", "start<1 + ", "a sum that does not start"},
                  {"if (block_index() == 0)", "if (block_index() == 9)", "an owner that is not there"},
                  {"each<36, 32>(", "each<36, 64>(", "every other element"},
                  {"u] = t", "u] = -t", "what is recorded", "if (first_thread)"}});
}

TEST_F(StepKernelFaults, InTheTextOfShuffledBatchesAreNoticed) {
  if (!all_cases()) GTEST_SKIP() << kAtNight;
  std::vector<EmulationOptions> all;
  const auto add = [&](RowTile tile, const std::string& what, const std::string& instead) {
    all.push_back({kShape, tile});
    all.back().edit = [what, instead](std::string& text) {
      for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += instead.size())
        text.replace(at, what.size(), instead);
    };
  };
  for (const RowTile tile : {RowTile::thread, RowTile::warp, RowTile::block, RowTile::pair, RowTile::split}) {
    const std::string epoch = tile == RowTile::split ? "epoch + 1" : "epoch";  // which asks a step ahead
    all.push_back({kShape, tile});
    add(tile, "look_ahead(", "look_ahead(  ");
    add(tile, "picked1.row(" + epoch + ",", "picked1.row(1,");
    add(tile, "look_ahead(Batches{150u,", "look_ahead(Batches{149u,");
  }
  compile_together(all, shuffled());
  for (std::size_t i = 0; i < all.size(); i += 4) {
    const Left right = run(all[i], shuffled());
    EXPECT_EQ(right.failure, "");
    EXPECT_EQ(run(all[i + 1], shuffled()), right);
    EXPECT_NE(run(all[i + 2], shuffled()), right) << "always the first step's rows";
    EXPECT_NE(run(all[i + 3], shuffled()), right) << "another permutation";
  }
}

TEST_F(StepKernelFaults, InTheTextOfWarpsAreNoticed) {
  if (!all_cases()) GTEST_SKIP() << kAtNight;
  expect_noticed(RowTile::warp, {{"rows_of<100>(", "1u + rows_of<100>(", "one row too many"},
                                 {" + block_index(), ", " + (block_index() | 1u), ", "another block's rows"},
                                 {"sums.finish(", "(void)(", "sums that no one gets"},
                                 {"weights<", "weights_transposed<", "weights that lie otherwise"}});
}

TEST_F(StepKernelFaults, InTheTextOfPairsAreNoticed) {
  if (!all_cases()) GTEST_SKIP() << kAtNight;
  expect_noticed(RowTile::pair,
                 {{"rows_of<100>(", "1u + rows_of<100>(", "one row too many"},
                  {"% 32u / 2", "% 32u / 4", "rows that two pairs have"},
                  {"of_columns<", "of_columns<1 + ", "the place of another sum"},
                  {"combine_lanes<Combine1, ", "combine_lanes<Combine1, 4 + ", "sums that lie elsewhere"},
                  {"matmul_halves<", "matmul_transposed_halves<", "weights that lie otherwise"}});
}

TEST_F(StepKernelFaults, InTheTextOfBlocksAreNoticed) {
  if (!all_cases()) GTEST_SKIP() << kAtNight;
  expect_noticed(
      RowTile::block,
      {{"    grid.sync();\n", "", "sums before all rows are there"},
       {"    grid.sync();\n", "", "a step that begins before the weights are there", "sums over rows"},
       {"rows_of<100>(", "1u + rows_of<99>(", "one row too many in a sum", "_part2,"},
       {"first = block_index() * 8u", "first = (block_index() | 1u) * 8u", "another block's rows"},
       {"const int job = static_cast<int>(at)", "const int job = static_cast<int>(at | 1u)", "another part of a sum"},
       {"_part1(epoch, numbers, first)", "_part1(epoch, numbers, first + 1)", "other rows of a part"},
       {"const Numbers numbers{", "const Numbers numbers{1 + ", "another step's data in a part"},
       {"&& thread_index() == 0;", "&& thread_index() == 999;", "an owner that is not there"}});
}

TEST_F(StepKernelFaults, InTheTextOfAClippedNormAreNoticed) {
  expect_noticed(RowTile::block,
                 {{"    grid.sync();\n", "", "parts of blocks that are not there yet", "sums0.send"},
                  {"s.sums0.start();", "", "sums of the step before"},
                  {"s.sums0.add(0, ", "s.sums0.add(0, 2.0f * ", "other elements"},
                  {".totals[0]", ".totals[1]", "another total"},
                  {"s.sums0.receive<4>(", "s.sums0.receive<3>(", "not all blocks"},
                  {"Fetched{k", "Fetched{1 + k", "another element of a gradient"}},
                 clipped());
  EXPECT_EQ(run({kShape, RowTile::block}, clipped()).failure, "");
  EXPECT_FALSE(is_noticed(edited({"sums0.start()", "sums0.start( )", ""}, RowTile::block), clipped()));
}

TEST_F(StepKernelFaults, InTheTextOfSplitTilesAreNoticed) {
  expect_noticed(RowTile::split,
                 {{"rows_of<100>(", "1u + rows_of<99>(", "one row too many"},
                  {"s.data.await(turn);", "", "data that are not there yet"},
                  {"      barrier();\n", "", "parts that are not there yet", "multiply_rows"},
                  {"barrier();\n      }\n      cluster.gather", "}\n      cluster.gather", "rows not there yet"},
                  {"(turn + 1, next_rows", "(turn, next_rows", "data over those of the turn"},
                  {"slice = rank *", "slice = (rank | 1) *", "another block's features"},
                  {"turn_first + rank *", "turn_first + (rank | 1) *", "another block's rows"},
                  {"sums.run(epoch)", "sums.run(1)", "always the same epoch"},
                  {"sums.run(epoch);\n    barrier();", "sums.run(epoch);", "totals that are not there yet"},
                  {"if (cluster_index() == 0)", "if (cluster_index() == 9)", "an owner that is not there"}});
}

TEST_F(StepKernelFaults, OfTheMachineAreNoticed) {
  const auto with = [](Fault fault, unsigned block, unsigned nth) {
    EmulationOptions options{kShape, RowTile::thread};
    options.planted = {fault, block, nth};
    return is_noticed(options);
  };
  EXPECT_TRUE(with(Fault::lost_store, 1, 3)) << "a missing signal";
  EXPECT_TRUE(with(Fault::lost_packet, 2, 1));
  EXPECT_TRUE(with(Fault::stale_packet, 2, 1));
  EXPECT_TRUE(with(Fault::wrong_parity, 1, 2));
  EXPECT_TRUE(with(Fault::swapped_store, 3, 1)) << "another owner";
  EXPECT_TRUE(with(Fault::swapped_packets, 3, 0));
  const auto split = [](Fault fault, unsigned block, unsigned nth) {
    EmulationOptions options{kShape, RowTile::split};
    options.planted = {fault, block, nth};
    return is_noticed(options);
  };
  EXPECT_TRUE(split(Fault::lost_store, 1, 3));
  EXPECT_TRUE(split(Fault::lost_packet, 2, 1));
  EXPECT_TRUE(split(Fault::stale_packet, 2, 1));
  EXPECT_TRUE(split(Fault::wrong_parity, 1, 2));
  EXPECT_TRUE(split(Fault::swapped_store, 3, 1));
  EXPECT_TRUE(split(Fault::swapped_packets, 3, 0));
}

}  // namespace
}  // namespace graphrun::test
