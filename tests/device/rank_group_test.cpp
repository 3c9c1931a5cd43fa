// Ranks on GPUs, over the fake runtime and the fake NCCL: values are combined in the tree of the CPU's ranks, whatever
// their number and size; a rank without a GPU, NCCL or the other ranks gets a clear Error.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <thread>

#include "fake_runtime.h"
#include "graphrun/communicator.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "programs.h"
#include "support/source_folder.h"

namespace graphrun::testing {
namespace {

using Values = std::vector<float>;

std::shared_ptr<Executor> fake_gpus() {
  return find_executor(GRAPHRUN_FAKE_CUDA);
}

// Combines values of these sizes, which are all in use at the same time.
struct Combining {
  Program program;
  std::vector<BufferId> from, to;
};
Combining combining(const std::vector<std::int64_t>& sizes, std::int32_t shards, CombineOp op) {
  Combining all;
  Builder build("combining");
  for (const std::int64_t size : sizes) {
    all.from.push_back(build.state("x", f32({size}), {}));
    all.to.push_back(build.result("y", f32({size})));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i)
    build.step("combine_shards", {all.from[i]}, all.to[i], ShardParams{shards, static_cast<std::int32_t>(op)});
  all.program = build.finish(*fake_gpus());
  return all;
}

Values values_of(std::int64_t size, std::size_t rank) {
  Values values = random_values(size, static_cast<std::uint32_t>(7 * rank + static_cast<std::size_t>(size)));
  for (std::size_t i = 0; i < values.size(); i += 5) values[i] *= 1e6f;  // so that the order of a sum shows
  return values;
}

float combine_two(CombineOp op, float x, float y) {
  return op == CombineOp::sum       ? x + y
         : op == CombineOp::product ? x * y
         : op == CombineOp::max     ? std::max(x, y)
                                    : std::min(x, y);
}

// Combines `blocks`: neighbours first.
Values tree_of(CombineOp op, std::vector<Values> blocks) {
  for (std::size_t apart = 1; apart < blocks.size(); apart *= 2)
    for (std::size_t b = 0; b < blocks.size(); b += 2 * apart)
      for (std::size_t i = 0; i < blocks[b].size(); ++i)
        blocks[b][i] = combine_two(op, blocks[b][i], blocks[b + apart][i]);
  return blocks[0];
}

// Calls run(rank, communicator) in a thread for each rank. Returns its Errors, without those of lost ranks.
std::vector<Diagnostic> on_ranks(int ranks,
                                 const std::function<void(std::size_t, std::shared_ptr<Communicator>)>& run) {
  std::vector<std::shared_ptr<Communicator>> communicators = thread_ranks(ranks);
  std::vector<std::future<std::optional<Diagnostic>>> running;
  for (std::size_t rank = 0; rank < communicators.size(); ++rank) {
    running.push_back(std::async(std::launch::async, [&, rank]() -> std::optional<Diagnostic> {
      const std::shared_ptr<Communicator> own = std::move(communicators[rank]);
      try {
        run(rank, own);
      } catch (const Error& error) {
        own->leave(error.diagnostics()[0].message);
        return error.diagnostics()[0];
      }
      return std::nullopt;
    }));
  }
  std::vector<Diagnostic> errors;
  for (auto& one : running)
    if (const auto error = one.get(); error && error->code != "ranks.lost") errors.push_back(*error);
  return errors;
}

void expect_tree(int ranks, const std::vector<std::int64_t>& sizes, CombineOp op) {
  const Combining what = combining(sizes, ranks, op);
  const auto errors = on_ranks(ranks, [&](std::size_t rank, const std::shared_ptr<Communicator>& own) {
    const auto member = fake_gpus()->load_shard(what.program, ranks, own);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Values mine = values_of(sizes[i], rank);
      member->write(what.from[i], std::as_bytes(std::span(mine)));
    }
    member->run(0, 3);  // the fake runs no graphs, but all else
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::vector<Values> blocks;
      for (int other = 0; other < ranks; ++other)
        blocks.push_back(values_of(sizes[i], static_cast<std::size_t>(other)));
      EXPECT_EQ(read<float>(*member, what.program, what.to[i]), tree_of(op, std::move(blocks)))
          << ranks << " ranks, " << sizes[i] << " elements, rank " << rank;
    }
  });
  for (const Diagnostic& error : errors) ADD_FAILURE() << error.message;
}

TEST(RankGroup, CombinesInTheTreeOfTheRanksOnHosts) {
  const FakeCuda machine("devices=16");
  for (const int ranks : {2, 4, 8, 16})
    for (const CombineOp op : {CombineOp::sum, CombineOp::product, CombineOp::max, CombineOp::min})
      expect_tree(ranks, {1, 2, 1000, 37}, op);
}

TEST(RankGroup, SlicesOfLargeBlocksGiveTheSameBits) {
  const FakeCuda machine("devices=8,memory=4000000000");
  for (const int ranks : {2, 4, 8}) expect_tree(ranks, {100'003, 5, 300'001}, CombineOp::sum);
  setenv("GRAPHRUN_DEBUG_RANKS", "slices", 1);
  for (const int ranks : {2, 4, 8}) expect_tree(ranks, {3, 1, 1000, 37}, CombineOp::sum);
  unsetenv("GRAPHRUN_DEBUG_RANKS");
}

// The values above would show another order of the ranks.
TEST(RankGroup, OtherTreesGiveOtherBits) {
  std::vector<Values> blocks;
  for (std::size_t rank = 0; rank < 4; ++rank) blocks.push_back(values_of(1000, rank));
  const Values right = tree_of(CombineOp::sum, blocks);
  std::swap(blocks[1], blocks[2]);
  EXPECT_NE(tree_of(CombineOp::sum, blocks), right);
}

TEST(RankGroup, TheOneErrorSaysWhatIsMissing) {
  const Combining what = combining({8}, 2, CombineOp::sum);
  const auto load = [&](std::size_t, const std::shared_ptr<Communicator>& own) {
    (void)fake_gpus()->load_shard(what.program, 2, own);
  };
  {
    const FakeCuda machine("devices=1");
    const auto errors = on_ranks(2, load);
    ASSERT_FALSE(errors.empty());
    EXPECT_EQ(errors[0].message, "ranks 0 and 1 have the same GPU, and each rank needs its own");
  }
  try {
    (void)fake_gpus()->load_shard(what.program, 8, thread_ranks(2)[0]);
    ADD_FAILURE() << "8 shards on 2 ranks";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics()[0].message,
              "cuda computes one shard on each rank: the batch has 8 shards, and there are 2 ranks");
  }
}

// In a process of its own: a library that was found once is kept.
TEST(RankGroupDeathTest, NcclIsMissing) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto run = [] {
    const FakeCuda machine("devices=2,missing=libnccl");
    const Combining what = combining({8}, 2, CombineOp::sum);
    const auto errors = on_ranks(2, [&](std::size_t, const std::shared_ptr<Communicator>& own) {
      (void)fake_gpus()->load_shard(what.program, 2, own);
    });
    std::fprintf(stderr, "%s; %s", errors[0].message.c_str(), errors[0].hint.c_str());
    std::_Exit(1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(1), "ranks on GPUs send their values with libnccl.so.2: .*libnccl2");
}

TEST(RankGroup, ARankThatDoesNotJoinEndsTheOthers) {
  for (const char* const fault : {"devices=4,unjoined", "devices=4,unconnected"}) {
    SCOPED_TRACE(fault);
    const FakeCuda machine(fault);
    const Combining what = combining({8}, 4, CombineOp::sum);
    const auto errors = on_ranks(4, [&](std::size_t, const std::shared_ptr<Communicator>& own) {
      (void)fake_gpus()->load_shard(what.program, 4, own);
    });
    ASSERT_EQ(errors.size(), 1u);  // the others end because of it
    EXPECT_EQ(errors[0].message, "ncclCommInitRank failed: as NCCL puts it");
  }
}

TEST(RankGroup, ALostRankEndsTheWait) {
  const Combining what = combining({8}, 2, CombineOp::sum);
  std::vector<std::shared_ptr<Communicator>> ranks = thread_ranks(2);
  std::unique_ptr<Runnable> members[2];
  {
    const FakeCuda machine("devices=2");
    auto other =
        std::async(std::launch::async, [&] { members[1] = fake_gpus()->load_shard(what.program, 2, ranks[1]); });
    members[0] = fake_gpus()->load_shard(what.program, 2, ranks[0]);
    other.get();
  }
  const FakeCuda machine("devices=2,busy");
  auto other = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ranks[1].reset();
    members[1].reset();  // closes the connection, as the end of a process does
  });
  try {
    members[0]->run(0, 1);
    ADD_FAILURE() << "the run ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);  // exit code 4
    EXPECT_EQ(error.diagnostics()[0].message, "rank 1 is gone");
  }
  other.get();
  unsetenv("FAKE_NCCL_ABORTED");
}

// Launches on the streams of device 0. M: on the main one, C: on the one that combines values and computes them.
// c<N: the latter waits for the first N on the main one; m<N: the reverse.
std::string order_of(const std::string& path) {
  std::ifstream file(path);
  std::string order, what, stream, event, main;
  std::map<std::string, int> launches, recorded;
  while (file >> what >> stream >> event) {
    if (main.empty()) main = stream;
    const bool on_main = stream == main;
    if (what == "launch") order += on_main ? " M" : " C", ++launches[stream];
    if (what == "record") recorded[event] = launches[stream];
    if (what == "wait") order += (on_main ? " m<" : " c<") + std::to_string(recorded[event]);
  }
  return order;
}

// The host makes other launches while values are combined. Readers and the next step wait.
TEST(RankGroup, OtherWorkHidesMessages) {
  constexpr std::int64_t kLarge = 4 << 20;  // a message of its own
  Builder build("hiding");
  const auto state = [&](const char* name, std::int64_t size) { return build.state(name, f32({size}), {}); };
  const auto result = [&](const char* name, std::int64_t size) { return build.result(name, f32({size})); };
  const BufferId w = state("w", kLarge), x = state("x", kLarge), v = state("v", 8);
  const BufferId first = build.step("relu", {w}, result("first", kLarge));
  build.step("relu", {x}, w);  // overwrites what the launch before it reads
  const BufferId unrelated = build.step("relu", {v}, result("unrelated", 8));
  const BufferId second = build.step("relu", {unrelated}, result("second", 8));
  const ShardParams params{2, static_cast<std::int32_t>(CombineOp::sum)};
  const BufferId all_second = result("all second", 8), all_first = result("all first", kLarge);
  build.step("combine_shards", {first}, all_first, params);
  build.step("combine_shards", {second}, all_second, params);
  build.step("relu", {all_second}, result("late", 8));
  build.step("relu", {all_first}, result("early", kLarge));
  build.step("relu", {v}, result("no reader", 8));
  const Program program = build.finish(*fake_gpus());

  const std::string path = ::testing::TempDir() + "graphrun_order_" + std::to_string(::getpid());
  const FakeCuda machine(("devices=2,order=" + path).c_str());
  const auto errors = on_ranks(2, [&](std::size_t rank, const std::shared_ptr<Communicator>& own) {
    const auto member = fake_gpus()->load_shard(program, 2, own);
    if (rank == 0) std::remove(path.c_str());  // without the work of load_shard()
    member->run(0, 2);
  });
  for (const Diagnostic& error : errors) ADD_FAILURE() << error.message;
  EXPECT_EQ(order_of(path),
            " c<0 C c<0 C C M c<1 C c<1 C C m<1 M M m<3 M m<6 M m<6"
            " c<5 C c<5 C C M c<6 C c<6 C C m<7 M M m<9 M m<12 M m<12");
  std::remove(path.c_str());
}

// The whole of a training but its kernels.
TEST(RankGroup, AModelTrainsInShards) {
  const FakeCuda machine("devices=4,products=r");
  const auto errors = on_ranks(4, [](std::size_t, const std::shared_ptr<Communicator>& own) {
    LoadOptions load;
    load.overrides = {{"train.shards", "4"}, {"train.epochs", "3"}};
    SessionOptions options;
    options.executor = GRAPHRUN_FAKE_CUDA;
    options.communicator = own;
    Session session(load_model(source_folder() + "/models/peaks.json", load), options);
    EXPECT_GT(session.train().steps, 0u);
  });
  for (const Diagnostic& error : errors) ADD_FAILURE() << error.message;
}

}  // namespace
}  // namespace graphrun::testing
