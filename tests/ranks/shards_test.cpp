// Trainings in shards: the bits depend on the number of shards and on nothing else; faults between ranks are noticed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graphrun/checkpoint.h"
#include "graphrun/communicator.h"
#include "graphrun/error.h"
#include "graphrun/op.h"
#include "graphrun/program.h"
#include "graphrun/session.h"
#include "graphrun/verify.h"
#include "steps/random_trainings.h"
#include "support/rounds.h"
#include "support/source_folder.h"
#include "support/temporary_folder.h"

namespace graphrun::test {
namespace {

using Ranks = std::vector<std::shared_ptr<Communicator>>;
using Overrides = std::vector<std::pair<std::string, std::string>>;

struct Ended {
  std::string hash, code, message;  // a code: the training failed
  std::uint64_t steps = 0;
};

Model load(const std::string& path, int shards, Overrides overrides = {}) {
  LoadOptions options;
  options.overrides = std::move(overrides);
  options.overrides.emplace_back("train.shards", std::to_string(shards));
  return load_model(path, options);
}

Ended train(Model model, std::shared_ptr<Communicator> communicator, int threads, std::string_view executor = "cpu",
            const std::function<void(Session&)>& before = {}) {
  Ended ended;
  try {
    SessionOptions options;
    options.executor = executor;
    options.threads = threads;
    options.communicator = std::move(communicator);
    Session session(std::move(model), options);
    if (before) before(session);
    ended.steps = session.train().steps;
    ended.hash = session.weights_hash();
  } catch (const Error& error) {
    ended.code = error.diagnostics().front().code;
    ended.message = error.diagnostics().front().message;
  }
  return ended;
}

// Trains on each rank in a thread of its own.
std::vector<Ended> train(const std::string& path, int shards, Ranks ranks, const Overrides& overrides = {},
                         const std::function<void(Session&, std::size_t)>& before = {}) {
  std::vector<std::future<Ended>> running;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    running.push_back(std::async(std::launch::async, [&, rank, communicator = std::move(ranks[rank])]() mutable {
      return train(load(path, shards, overrides), std::move(communicator), 1 + static_cast<int>(rank % 2), "cpu",
                   [&](Session& session) {
                     if (before) before(session, rank);
                   });
    }));
  }
  std::vector<Ended> all;
  for (auto& one : running) all.push_back(one.get());
  return all;
}

void expect_one_hash(const std::string& path, int shards, const Overrides& overrides, const std::string& what) {
  const Ended alone = train(load(path, shards, overrides), nullptr, 1);
  EXPECT_EQ(train(load(path, shards, overrides), nullptr, 3).hash, alone.hash) << what;
  for (int ranks = 2; ranks <= shards; ranks *= 2)
    for (const bool share_memory : {false, true})
      for (const Ended& one : train(path, shards, thread_ranks(ranks, share_memory), overrides)) {
        EXPECT_EQ(one.hash, alone.hash) << what << " on " << ranks << " ranks: " << one.message;
        EXPECT_EQ(one.code, alone.code) << what;
      }
}

// Ranks over sockets, and in shared memory.
class RanksOver : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Transports, RanksOver, testing::Bool(),
                         [](const auto& one) { return one.param ? "SharedMemory" : "Sockets"; });

TEST(Shards, GiveOneHashOnAnyNumberOfRanks) {
  for (const auto& [model, epochs] : {std::pair("xor", "50"), {"peaks", "5"}, {"digits", "2"}, {"gan", "1"}})
    expect_one_hash(source_folder() + "/models/" + model + ".json", 8, {{"train.epochs", epochs}}, model);
}

TEST(Shards, OfRandomTrainingsGiveOneHash) {
  const TemporaryFolder folder;
  const std::uint64_t trainings = cases(24, 500);
  std::uint64_t rejected = 0;
  for (std::uint64_t seed = first_step_graph(); seed < first_step_graph() + trainings; ++seed) {
    const std::string text = random_training(seed), path = folder.write("model.json", text);
    const int shards = 2 << seed % 3, ranks = 1 << seed % 4;
    const Ended alone = train(load(path, shards), nullptr, 2);
    if (alone.code == "shards.rows") {
      ++rejected;
      continue;
    }
    for (const Ended& one : train(path, shards, thread_ranks(std::min(ranks, shards), seed / 4 % 2 == 1))) {
      EXPECT_EQ(one.hash, alone.hash) << "seed " << seed << ": " << one.message << "\n" << text;
      EXPECT_EQ(one.code, alone.code) << "seed " << seed << ": " << one.message << "\n" << text;
    }
    VerifyOptions options;
    options.steps = 3;
    const VerifyReport report = verify(load(path, shards), options);
    EXPECT_TRUE(report.passed()) << "seed " << seed << ": " << to_string(*report.difference) << "\n" << text;
  }
  EXPECT_LE(rejected, trainings / 10);
}

// One shard is the whole batch; with more, sums are only added in another order.
TEST(Shards, ComputeTheSameTrainingUpToRounding) {
  for (const Overrides& overrides : {Overrides{{"train.batch", "50"}},
                                     {{"train.batch", "64"}, {"train.last_batch", "drop"}},
                                     {{"train.batch", "all"}},
                                     {{"train.batch", "3"}, {"train.clip_norm", "0.1"}}}) {
    std::vector<double> losses[2];
    for (const int shards : {1, 8}) {
      Overrides given = overrides;
      given.insert(given.end(), {{"train.epochs", "1"}, {"train.shuffle", "true"}});
      Session session(load(source_folder() + "/models/digits.json", shards, given));
      losses[shards == 8] = session.train().losses;
    }
    ASSERT_EQ(losses[0].size(), losses[1].size());
    for (std::size_t i = 0; i < losses[0].size(); ++i)
      EXPECT_NEAR(losses[0][i], losses[1][i], 2e-3 * (1 + losses[0][i]));
  }
}

const char* const kModel = R"--({"format": 1, "data": {"train": {"random": {"rows": 50, "columns":
  {"a": {"normal": 1, "shape": [3]}, "b": {"normal": 1, "shape": [1]}}}, "x": ["a"], "y": ["b"]}},
 "inputs": {"x": ["batch", 3], "y": ["batch", 1]},
 "graph": ["d = dense(x, units=4)", "h = batch_norm(d)", "out = dense(h, units=1)",
  "loss = mean(square(out - y))"%s], "outputs": {"out": "y"},
 "train": {"minimize": "loss", "optimizer": {"adam": {"lr": 0.1}}, "batch": 16, "epochs": 3}})--";

std::string write_model(const TemporaryFolder& folder, const std::string& more = "") {
  std::string text = kModel;
  return folder.write("model.json", text.replace(text.find("%s"), 2, more));
}

TEST(Shards, RejectWhatNeedsAllRowsAtOnce) {
  const TemporaryFolder folder;
  const std::string path = write_model(folder, R"--(, "bad = sum(logsumexp(out, axis=0))")--");
  const Overrides bad = {{"train.minimize", "bad"}};
  const Ended ended = train(load(path, 2, bad), nullptr, 1);
  EXPECT_EQ(ended.code, "shards.rows") << ended.message;
  EXPECT_NE(ended.message.find("logsumexp"), std::string::npos) << ended.message;
  EXPECT_EQ(train(load(path, 1, bad), nullptr, 1).code, "");
}

// The ranks combine values within the step, so no phase has step kernels. Values that do not depend on each other share
// a message.
TEST(Shards, ArePlannedForGpus) {
  SessionOptions options;
  options.executor = "cuda";
  options.target = "h200";
  const std::pair<const char*, int> cases[] = {{"peaks", 1}, {"digits_cnn", 1}, {"gan", 2}};
  for (const auto& [name, messages] : cases) {
    const Program program = plan_program(load(fmt::format("{}/models/{}.json", source_folder(), name), 4), options);
    int found = 0;
    Op before = Op::assign;
    for (const Step& step : program.phases[0].steps) {
      if (step.op == Op::combine_shards && before != Op::combine_shards) ++found;
      before = step.op;
    }
    EXPECT_EQ(found, messages) << name;
    for (const Phase& phase : program.phases)
      for (const Region& region : phase.regions) EXPECT_TRUE(region.stages.empty()) << name << ": " << phase.name;
  }
}

TEST(Shards, NeedAPowerOfTwo) {
  const TemporaryFolder folder;
  const std::string path = write_model(folder);
  EXPECT_EQ(train(load(path, 2), nullptr, 1).code, "");
  for (const int wrong : {3, 1024}) EXPECT_EQ(train(load(path, wrong), nullptr, 1).code, "train.shards") << wrong;
  EXPECT_THROW(load(path, 0), Error);
  for (const Ended& one : train(path, 4, thread_ranks(3))) EXPECT_EQ(one.code, "shards.ranks") << one.message;
  for (const Ended& one : train(path, 1, thread_ranks(2))) EXPECT_EQ(one.code, "shards.ranks") << one.message;
}

TEST_P(RanksOver, OfOtherTrainingsDoNotJoin) {
  const TemporaryFolder folder;
  const std::string path = write_model(folder);
  Ranks ranks = thread_ranks(2, GetParam());
  auto other = std::async(std::launch::async, [&, one = std::move(ranks[1])]() mutable {
    return train(load(path, 2, {{"train.seed", "5"}}), std::move(one), 1);
  });
  const Ended mine = train(load(path, 2), std::move(ranks[0]), 1);
  EXPECT_EQ(mine.code, "ranks.differ");
  EXPECT_EQ(mine.message, other.get().message);
}

TEST_P(RanksOver, AreCancelledTogether) {
  const TemporaryFolder folder;
  const std::string path = write_model(folder);
  std::vector<std::future<Ended>> running;
  for (std::shared_ptr<Communicator>& one : thread_ranks(4, GetParam())) {
    const int rank = one->rank();
    running.push_back(std::async(std::launch::async, [&, rank, one]() mutable {
      Ended ended;
      SessionOptions options;
      options.communicator = std::move(one);
      options.threads = 1;
      Session session(load(path, 4, {{"train.epochs", "100000000"}}), options);
      TrainOptions how;
      how.keep_losses = false;
      how.on_first_step = [&] {
        if (rank == 2) session.cancel();
      };
      const TrainResult result = session.train(how);
      EXPECT_TRUE(result.cancelled);
      return Ended{session.weights_hash(), {}, {}, result.steps};
    }));
  }
  const Ended first = running.front().get();
  for (std::size_t i = 1; i < running.size(); ++i) {
    const Ended one = running[i].get();
    EXPECT_EQ(one.hash, first.hash);
    EXPECT_EQ(one.steps, first.steps);
  }
}

TEST_P(RanksOver, EndWhenOneIsGone) {
  const TemporaryFolder folder;
  const std::string path = write_model(folder);
  Ranks ranks = thread_ranks(4, GetParam());
  ranks[2].reset();
  const std::vector<Ended> ended = train(path, 4, {std::move(ranks[0]), std::move(ranks[1]), std::move(ranks[3])});
  for (const Ended& one : ended) {
    EXPECT_EQ(one.code, "ranks.lost") << one.hash;
    EXPECT_EQ(one.message, "rank 2 is gone");
  }
}

TEST(Ranks, LookForLostOnesWithoutWaiting) {
  const auto seen = [](Communicator& rank) -> std::string {
    try {
      rank.look();
    } catch (const Error& error) {
      return error.diagnostics().front().code + ": " + error.diagnostics().front().message;
    }
    return "";
  };
  Ranks ranks = thread_ranks(3);
  for (const auto& rank : ranks) EXPECT_EQ(seen(*rank), "");
  const std::uint64_t number = 1;
  ranks[2]->gather(std::as_bytes(std::span(&number, 1)), {});  // a message that waits is not an end
  EXPECT_EQ(seen(*ranks[0]), "");
  ranks[1]->leave("no memory");
  EXPECT_EQ(seen(*ranks[0]), "ranks.lost: rank 1: no memory");
  EXPECT_EQ(seen(*ranks[2]), "ranks.lost: rank 1: no memory");
  ranks = thread_ranks(2);
  ranks[0].reset();
  EXPECT_EQ(seen(*ranks[1]), "ranks.lost: rank 0 is gone");
}

TEST_P(RanksOver, ThatAreAStepBehindEndTheTraining) {
  const TemporaryFolder folder;
  const std::string path = write_model(folder);
  const auto ended = train(path, 2, thread_ranks(2, GetParam()), {}, [](Session& session, std::size_t rank) {
    if (rank == 1) session.advance(1);
  });
  for (const Ended& one : ended) EXPECT_EQ(one.code, "ranks.lost") << one.hash;
}

TEST_P(RanksOver, ResumeOnAnotherNumberOfRanks) {
  const TemporaryFolder folder;
  const std::string path = write_model(folder), checkpoint = folder.path() / "checkpoint";
  const Ended whole = train(load(path, 8), nullptr, 1);
  train(path, 8, thread_ranks(4, GetParam()), {{"train.epochs", "2"}});
  {
    Session session(load(path, 8, {{"train.epochs", "2"}}));
    session.train();
    save_checkpoint(session, checkpoint);
  }
  for (const Ended& one : train(path, 8, thread_ranks(2, GetParam()), {},
                                [&](Session&session, std::size_t) { load_checkpoint(session, checkpoint); })) {
    EXPECT_EQ(one.hash, whole.hash) << one.message;
    EXPECT_EQ(one.steps, whole.steps);
  }
}

// Changes what rank 0 gathers, from the tenth time on.
class Fault final : public Communicator {
 public:
  using Change = std::function<void(std::span<std::byte> all, std::size_t block, std::vector<std::byte>& before)>;
  Fault(std::shared_ptr<Communicator> of, Change change) : of_(std::move(of)), change_(std::move(change)) {}
  int rank() const override { return of_->rank(); }
  int ranks() const override { return of_->ranks(); }
  void gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    of_->gather(mine, all);
    if (mine.size() < 32 || ++calls_ < 10) return;  // not an agreement
    std::vector<std::byte>& before = before_[mine.size()];
    change_(all, mine.size(), before);
    before.assign(all.begin(), all.end());
  }
  void broadcast(std::span<std::byte> bytes) override { of_->broadcast(bytes); }

 private:
  std::shared_ptr<Communicator> of_;
  Change change_;
  std::map<std::size_t, std::vector<std::byte>> before_;  // last gather of each size
  int calls_ = 0;
};

TEST_P(RanksOver, FaultsOfBlocksChangeTheHash) {
  const TemporaryFolder folder;
  const std::string path = write_model(folder);
  const std::string good = train(load(path, 4), nullptr, 1).hash;
  const auto with = [&](Fault::Change change) {
    Ranks ranks = thread_ranks(4, GetParam());
    ranks[0] = std::make_shared<Fault>(std::move(ranks[0]), std::move(change));
    return train(path, 4, std::move(ranks)).front().hash;
  };
  EXPECT_EQ(with([](auto, std::size_t, auto&) {}), good);
  EXPECT_NE(with([](std::span<std::byte> all, std::size_t block, auto&) {  // swapped: 0 + 2, then 1 + 3
              std::swap_ranges(all.begin() + static_cast<std::ptrdiff_t>(block),
                               all.begin() + static_cast<std::ptrdiff_t>(2 * block),
                               all.begin() + static_cast<std::ptrdiff_t>(2 * block));
            }),
            good);
  EXPECT_NE(with([](std::span<std::byte> all, std::size_t block, std::vector<std::byte>& before) {  // stale
              if (before.size() == all.size()) std::memcpy(all.data() + block, before.data() + block, block);
            }),
            good);
  EXPECT_NE(with([](std::span<std::byte> all, std::size_t block, auto&) {  // missing
              std::memset(all.data() + 3 * block, 0, block);
            }),
            good);
}

}  // namespace
}  // namespace graphrun::test
