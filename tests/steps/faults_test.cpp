// Mistakes planted in the text of a step kernel, or in the machine that runs it: each is noticed, as other bytes after
// three steps or as threads that wait for ever.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "graphrun/session.h"
#include "session/compiling/compiled_model.h"
#include "steps/emulated_executor.h"
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

Left run(const EmulationOptions& options, const Model& model = in_order()) {
  const std::shared_ptr<Executor> executor = std::make_shared<EmulatedExecutor>(options);
  PlanOptions plan;
  plan.fuse = true;
  const CompiledModel compiled = compile_model(model, {&executor, 1}, plan);
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

// Whether under one of 20 schedules something is other than it should be.
bool is_noticed(EmulationOptions options, const Model& model = in_order()) {
  const Left expected = &model == &in_order() ? right(*options.tile) : run({kShape, options.tile}, model);
  for (options.schedule = 0; options.schedule < 20; ++options.schedule)
    if (run(options, model) != expected) return true;
  return false;
}

// In the kernel of training, the first place after `after`.
bool is_noticed(const std::string& what, const std::string& instead, const std::string& after = "",
                RowTile tile = RowTile::thread, const Model& model = in_order()) {
  EmulationOptions options{kShape, tile};
  int edited = 0;
  options.edit = [&](std::string& text) {
    if (text.find("gradient") == std::string::npos) return;
    const std::size_t from = text.find(after), at = text.find(what, from);
    if (from == std::string::npos || at == std::string::npos) throw std::logic_error("the text has no " + what);
    text.replace(at, what.size(), instead);
    ++edited;
  };
  const bool noticed = is_noticed(options, model);
  return noticed && edited > 0;
}

// The texts and the machine under them are compiled without sanitizers, which see nothing here that other tests of step
// kernels do not show them.
class StepKernelFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (is_too_slow()) GTEST_SKIP() << "takes minutes under a sanitizer: runs in builds without one";
  }
};

TEST_F(StepKernelFaults, NothingIsNoticedWithoutOne) {
  for (const RowTile tile : {RowTile::thread, RowTile::warp, RowTile::block, RowTile::pair, RowTile::split}) {
    EXPECT_EQ(right(tile).failure, "");
    EXPECT_FALSE(is_noticed(EmulationOptions{kShape, tile}));
  }
}

TEST_F(StepKernelFaults, InTheTextAreNoticed) {
  EXPECT_TRUE(is_noticed("    barrier();\n  }\n", "  }\n")) << "the barrier at a step's end";
  EXPECT_TRUE(is_noticed("  barrier();\n  for (u32 epoch", "  for (u32 epoch")) << "the barrier before the first step";
  EXPECT_TRUE(is_noticed("for_rows<100u, 128u, 1, true, true>(first_row, rows_of",
                         "for_rows<100u, 128u, 1, true, true>(first_row, 1u + rows_of"))
      << "one row too many";
  EXPECT_TRUE(is_noticed("run(epoch)", "run(epoch - 1)")) << "the epoch before";
  EXPECT_TRUE(is_noticed("run(epoch)", "run(1)")) << "always the same epoch";
  EXPECT_TRUE(is_noticed("block_index() * 32u", "(block_index() | 1u) * 32u")) << "another block's rows";
  EXPECT_TRUE(is_noticed("add_product<", "add_product<1 + ")) << "the place of another sum";
  EXPECT_TRUE(is_noticed("start<", "start<1 + ")) << "a sum that does not start";
  EXPECT_TRUE(is_noticed("if (block_index() == 0)", "if (block_index() == 9)")) << "an owner that is not there";
  EXPECT_TRUE(is_noticed("each<36, 32>(", "each<36, 64>(")) << "every other element";
  EXPECT_TRUE(is_noticed("u] = t", "u] = -t", "if (first_thread)")) << "what is recorded";
}

TEST_F(StepKernelFaults, InTheTextOfShuffledBatchesAreNoticed) {
  for (const RowTile tile : {RowTile::thread, RowTile::warp, RowTile::block, RowTile::pair, RowTile::split}) {
    const Left right = run({kShape, tile}, shuffled());
    EXPECT_EQ(right.failure, "");
    const auto left = [&](const std::string& what, const std::string& instead) {
      EmulationOptions options{kShape, tile};
      options.edit = [&](std::string& text) {
        for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += instead.size())
          text.replace(at, what.size(), instead);
      };
      return run(options, shuffled());
    };
    EXPECT_EQ(left("look_ahead(", "look_ahead(  "), right);
    const std::string epoch = tile == RowTile::split ? "epoch + 1" : "epoch";  // which asks a step ahead
    EXPECT_NE(left("picked1.row(" + epoch + ",", "picked1.row(1,"), right) << "always the first step's rows";
    EXPECT_NE(left("look_ahead(Batches{150u,", "look_ahead(Batches{149u,"), right) << "another permutation";
  }
}

TEST_F(StepKernelFaults, InTheTextOfWarpsAreNoticed) {
  const auto noticed = [](const std::string& what, const std::string& instead) {
    return is_noticed(what, instead, "", RowTile::warp);
  };
  EXPECT_TRUE(noticed("rows_of<100>(", "1u + rows_of<100>(")) << "one row too many";
  EXPECT_TRUE(noticed(" + block_index(), ", " + (block_index() | 1u), ")) << "another block's rows";
  EXPECT_TRUE(noticed("sums.finish(", "(void)(")) << "sums that no one gets";
  EXPECT_TRUE(noticed("weights<", "weights_transposed<")) << "weights that lie otherwise";
}

TEST_F(StepKernelFaults, InTheTextOfPairsAreNoticed) {
  const auto noticed = [](const std::string& what, const std::string& instead) {
    return is_noticed(what, instead, "", RowTile::pair);
  };
  EXPECT_TRUE(noticed("rows_of<100>(", "1u + rows_of<100>(")) << "one row too many";
  EXPECT_TRUE(noticed("% 32u / 2", "% 32u / 4")) << "rows that two pairs have";
  EXPECT_TRUE(noticed("of_columns<", "of_columns<1 + ")) << "the place of another sum";
  EXPECT_TRUE(noticed("combine_lanes<Combine1, ", "combine_lanes<Combine1, 4 + ")) << "sums that lie elsewhere";
  EXPECT_TRUE(noticed("matmul_halves<", "matmul_transposed_halves<")) << "weights that lie otherwise";
}

TEST_F(StepKernelFaults, InTheTextOfBlocksAreNoticed) {
  const auto noticed = [](const std::string& what, const std::string& instead, const std::string& after = "") {
    return is_noticed(what, instead, after, RowTile::block);
  };
  EXPECT_TRUE(noticed("    grid.sync();\n", "")) << "sums before all rows are there";
  EXPECT_TRUE(noticed("    grid.sync();\n", "", "sums over rows")) << "a step that begins before the weights are there";
  EXPECT_TRUE(noticed("rows_of<100>(", "1u + rows_of<99>(", "_part2,")) << "one row too many in a sum";
  EXPECT_TRUE(noticed("first = block_index() * 8u", "first = (block_index() | 1u) * 8u")) << "another block's rows";
  EXPECT_TRUE(noticed("const int job = static_cast<int>(at)", "const int job = static_cast<int>(at | 1u)"))
      << "another part of a sum";
  EXPECT_TRUE(noticed("_part1(epoch, numbers, first)", "_part1(epoch, numbers, first + 1)")) << "other rows of a part";
  EXPECT_TRUE(noticed("const Numbers numbers{", "const Numbers numbers{1 + ")) << "another step's data in a part";
  EXPECT_TRUE(noticed("&& thread_index() == 0;", "&& thread_index() == 999;")) << "an owner that is not there";
}

TEST_F(StepKernelFaults, InTheTextOfAClippedNormAreNoticed) {
  const auto noticed = [](const std::string& what, const std::string& instead, const std::string& after = "") {
    return is_noticed(what, instead, after, RowTile::block, clipped());
  };
  EXPECT_EQ(run({kShape, RowTile::block}, clipped()).failure, "");
  EXPECT_FALSE(noticed("sums0.start()", "sums0.start( )"));
  EXPECT_TRUE(noticed("    grid.sync();\n", "", "sums0.send")) << "parts of blocks that are not there yet";
  EXPECT_TRUE(noticed("s.sums0.start();", "")) << "sums of the step before";
  EXPECT_TRUE(noticed("s.sums0.add(0, ", "s.sums0.add(0, 2.0f * ")) << "other elements";
  EXPECT_TRUE(noticed(".totals[0]", ".totals[1]")) << "another total";
  EXPECT_TRUE(noticed("s.sums0.receive<4>(", "s.sums0.receive<3>(")) << "not all blocks";
  EXPECT_TRUE(noticed("Fetched{k", "Fetched{1 + k")) << "another element of a gradient";
}

TEST_F(StepKernelFaults, InTheTextOfSplitTilesAreNoticed) {
  const auto noticed = [](const std::string& what, const std::string& instead, const std::string& after = "") {
    return is_noticed(what, instead, after, RowTile::split);
  };
  EXPECT_TRUE(noticed("rows_of<100>(", "1u + rows_of<99>(")) << "one row too many";
  EXPECT_TRUE(noticed("s.data.await(turn);", "")) << "data that are not there yet";
  EXPECT_TRUE(noticed("      barrier();\n", "", "multiply_rows")) << "parts that are not there yet";
  EXPECT_TRUE(noticed("barrier();\n      }\n      cluster.gather", "}\n      cluster.gather")) << "rows not there yet";
  EXPECT_TRUE(noticed("(turn + 1, next_rows", "(turn, next_rows")) << "data over those of the turn";
  EXPECT_TRUE(noticed("slice = rank *", "slice = (rank | 1) *")) << "another block's features";
  EXPECT_TRUE(noticed("turn_first + rank *", "turn_first + (rank | 1) *")) << "another block's rows";
  EXPECT_TRUE(noticed("sums.run(epoch)", "sums.run(1)")) << "always the same epoch";
  EXPECT_TRUE(noticed("sums.run(epoch);\n    barrier();", "sums.run(epoch);")) << "totals that are not there yet";
  EXPECT_TRUE(noticed("if (cluster_index() == 0)", "if (cluster_index() == 9)")) << "an owner that is not there";
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
