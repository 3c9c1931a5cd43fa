// Launches wait for those whose bytes they share, and for no other. Needs no device.
#include "executors/cuda/launch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "programs.h"

namespace graphrun::cuda {
namespace {

using Order = std::vector<std::vector<std::uint32_t>>;

bool overlap(const std::vector<ByteRange>& a, const std::vector<ByteRange>& b) {
  return std::any_of(a.begin(), a.end(), [&](const ByteRange& x) {
    return std::any_of(b.begin(), b.end(),
                       [&](const ByteRange& y) { return std::max(x.begin, y.begin) < std::min(x.end, y.end); });
  });
}

// By definition: every pair of launches, one of which writes what the other one touches.
Order pairs_of(const std::vector<LaunchAccess>& launches) {
  Order order(launches.size());
  for (std::uint32_t later = 0; later < launches.size(); ++later) {
    for (std::uint32_t earlier = 0; earlier < later; ++earlier) {
      const LaunchAccess &a = launches[earlier], &b = launches[later];
      if (overlap(a.writes, b.reads) || overlap(a.writes, b.writes) || overlap(a.reads, b.writes))
        order[later].push_back(earlier);
    }
  }
  return order;
}

// Of each launch, all that have ended when it begins.
std::vector<std::vector<bool>> closure_of(const Order& order) {
  std::vector<std::vector<bool>> ended;
  for (const auto& after : order) {
    std::vector<bool> mine(order.size(), false);
    for (const std::uint32_t before : after) {
      EXPECT_LT(before, ended.size()) << "a launch waits for a later one";
      mine[before] = true;
      for (std::size_t i = 0; i < before; ++i) mine[i] = mine[i] || ended[before][i];
    }
    ended.push_back(std::move(mine));
  }
  return ended;
}

std::vector<LaunchAccess> random_launches(std::uint32_t seed, std::size_t count, std::uint64_t bytes) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  const auto ranges = [&](std::uint64_t most) {
    std::vector<ByteRange> some(below(most + 1));
    for (ByteRange& range : some) {
      range.begin = below(bytes);
      range.end = range.begin + below(std::max<std::uint64_t>(bytes / 8, 1));  // some are empty
    }
    return some;
  };
  std::vector<LaunchAccess> launches;
  for (std::size_t i = 0; i < count; ++i) launches.push_back({ranges(3), ranges(2)});
  return launches;
}

TEST(LaunchOrder, IsThatOfSharedBytesAndNoOther) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<LaunchAccess> launches = random_launches(seed, 40, seed % 3 == 0 ? 24 : 400);
    const Order order = launch_order(launches);
    const auto ended = closure_of(order);
    ASSERT_EQ(ended, closure_of(pairs_of(launches)));
    for (const auto& after : order) {
      for (const std::uint32_t a : after) {
        for (const std::uint32_t b : after) EXPECT_FALSE(ended[a][b]) << b << " ends before " << a << " anyway";
      }
    }
  }
}

// Farther back than implied waits are looked for.
TEST(LaunchOrder, HoldsOverManyLaunches) {
  const std::vector<LaunchAccess> launches = random_launches(7, 1500, 20000);
  EXPECT_EQ(closure_of(launch_order(launches)), closure_of(pairs_of(launches)));
}

// An update of 100,000 parameters, each read by two launches: nobody waits for more than his own.
TEST(LaunchOrder, TakesManyLaunches) {
  std::vector<LaunchAccess> launches;
  const std::uint32_t count = 100000;
  for (std::uint64_t i = 0; i < count; ++i) launches.push_back({{{i * 64, i * 64 + 128}}, {}});
  for (std::uint64_t i = 0; i < count; ++i) launches.push_back({{}, {{i * 64, i * 64 + 64}}});
  const Order order = launch_order(launches);
  EXPECT_TRUE(order[5].empty());
  for (std::uint32_t i = 1; i < count; ++i) EXPECT_EQ(order[count + i], (std::vector<std::uint32_t>{i, i - 1}));
}

TEST(LaunchOrder, MessagesBeginEarlyAndNoDependencyIsLost) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Order order = launch_order(random_launches(seed, 40, 400));
    std::vector<bool> messages(order.size());
    for (std::size_t i = 0; i < messages.size(); ++i) messages[i] = i % 7 == seed % 7;
    const std::vector<std::uint32_t> sequence = message_order(order, messages);
    std::vector<std::size_t> place(order.size(), order.size());
    for (std::size_t i = 0; i < sequence.size(); ++i) place[sequence[i]] = i;
    for (std::size_t launch = 0; launch < order.size(); ++launch) {
      ASSERT_LT(place[launch], order.size());
      for (const std::uint32_t before : order[launch]) EXPECT_LT(place[before], place[launch]);
    }
    const auto ended = closure_of(order);
    for (std::size_t message = 0; message < order.size(); ++message) {
      if (!messages[message]) continue;
      for (std::size_t i = 0; i < place[message]; ++i) {  // this message or an earlier one needs it
        bool needed = false;
        for (std::size_t m = 0; m <= message; ++m) needed |= messages[m] && (m == sequence[i] || ended[m][sequence[i]]);
        EXPECT_TRUE(needed) << sequence[i] << " delays message " << message;
      }
    }
  }
}

// The update whose message ends first comes first. Without messages, nothing moves.
TEST(LaunchOrder, ReadersOfLateMessagesComeLast) {
  const Order order = {{}, {}, {0}, {1}, {3}, {2}, {}};
  EXPECT_EQ(message_order(order, {false, false, true, true, false, false, false}),
            (std::vector<std::uint32_t>{0, 2, 1, 3, 6, 5, 4}));
  EXPECT_EQ(message_order(order, std::vector<bool>(7)), (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(LaunchOrder, SeesAllThatAStepTouches) {
  using namespace graphrun::testing;
  Program program;
  program.buffers.resize(4);
  for (std::size_t i = 0; i < 4; ++i) {
    program.buffers[i].type = f32({2});
    program.buffers[i].offset = 256 * i;
    program.buffers[i].bytes = 256;
  }
  program.buffers[3].kind = BufferKind::workspace;
  Step step;
  step.inputs = {0};
  step.row_count = 1;
  step.output = 2;
  step.workspace = 3;
  LaunchAccess access;
  access.add(program, step);
  const auto ends = [](const std::vector<ByteRange>& ranges) {
    std::vector<std::uint64_t> list;
    for (const ByteRange& range : ranges) list.insert(list.end(), {range.begin, range.end});
    return list;
  };
  EXPECT_EQ(ends(access.reads), (std::vector<std::uint64_t>{0, 8, 256, 264}));
  EXPECT_EQ(ends(access.writes), (std::vector<std::uint64_t>{512, 520, 768, 1024}));

  program.buffers[0].layout = Layout::codes;  // two bytes of the type's eight
  program.buffers[0].bytes = 2;
  LaunchAccess batch;
  batch.add(program, step);
  EXPECT_EQ(ends(batch.reads), (std::vector<std::uint64_t>{0, 2, 256, 264}));
}

}  // namespace
}  // namespace graphrun::cuda
