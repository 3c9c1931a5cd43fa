// The packer against simpler algorithms, problems with a known answer, and its own contract.
#include "packing/pack.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <string_view>

#include "support/cpu_time.h"
#include "support/no_slack.h"
#include "support/rounds.h"

namespace graphrun::plan {
namespace {

std::string checked(const std::vector<Interval>& intervals, const Packing& packing, std::uint64_t alignment = 1) {
  if (packing.height < packing.lower_bound) return "the total is below its lower bound";
  return validate(intervals, packing.offsets, packing.height, alignment);
}

// Sums the live bytes at every first use: simple enough to trust.
std::uint64_t peak(const std::vector<Interval>& intervals, std::uint64_t alignment = 1) {
  std::uint64_t most = 0;
  for (const Interval& at : intervals) {
    std::uint64_t live = 0;
    for (const Interval& i : intervals) {
      const std::uint64_t padded = (i.size + alignment - 1) / alignment * alignment;
      if (i.first <= at.first && at.first <= i.last) live += padded;
    }
    most = std::max(most, live);
  }
  return most;
}

std::vector<Interval> random_problem(std::mt19937& random, std::size_t count, std::uint32_t times,
                                     std::uint64_t sizes) {
  const auto draw = [&](std::uint64_t low, std::uint64_t high) { return low + random() % (high - low + 1); };
  std::vector<Interval> intervals(count);
  for (Interval& i : intervals) {
    const auto a = static_cast<std::uint32_t>(draw(0, times)), b = static_cast<std::uint32_t>(draw(0, times));
    i = {draw(0, sizes), std::min(a, b), std::max(a, b)};
  }
  return intervals;
}

TEST(Pack, NothingTakesNothing) {
  const Packing packing = pack({});
  EXPECT_TRUE(packing.offsets.empty());
  EXPECT_EQ(packing.height, 0u);
  EXPECT_EQ(packing.lower_bound, 0u);
}

TEST(Pack, OneBlockLiesAtZero) {
  const Packing packing = pack(std::vector<Interval>{{100, 3, 7}}, 64);
  EXPECT_EQ(packing.offsets, std::vector<std::uint64_t>{0});
  EXPECT_EQ(packing.height, 128u);  // padded to the alignment
}

TEST(Pack, LivesThatShareAMomentAreApart) {
  const std::vector<Interval> touching = {{10, 0, 1}, {20, 1, 2}};
  EXPECT_EQ(pack(touching).height, 30u);
  const std::vector<Interval> apart = {{10, 0, 0}, {20, 1, 2}};
  EXPECT_EQ(pack(apart).height, 20u);
}

TEST(Pack, ZeroSizesTakeNoRoomAndKeepTheirAlignment) {
  const std::vector<Interval> intervals = {{0, 0, 9}, {8, 0, 9}, {0, 0, 9}, {8, 2, 3}};
  const Packing packing = pack(intervals, 8);
  EXPECT_EQ(packing.height, 16u);
  EXPECT_EQ(checked(intervals, packing, 8), "");
}

TEST(Pack, AChainMeetsTheLowerBound) {
  std::vector<Interval> chain;
  for (std::uint32_t t = 0; t < 200; ++t) chain.push_back({64 * (1 + t * 37 % 11), t, t + 1});
  const Packing packing = pack(chain);
  EXPECT_EQ(checked(chain, packing), "");
  EXPECT_EQ(packing.lower_bound, peak(chain));
  EXPECT_EQ(packing.height, packing.lower_bound);
}

TEST(Pack, NestedLivesOfATrainingStepMeetTheLowerBound) {
  std::vector<Interval> nested;
  const std::uint32_t depth = 3000;  // deeper than the packer divides
  for (std::uint32_t i = 0; i < depth; ++i) nested.push_back({16 + i % 7, i, 2 * depth - i});
  const Packing packing = pack(nested, 16);
  EXPECT_EQ(checked(nested, packing, 16), "");
  EXPECT_EQ(packing.height, packing.lower_bound);
}

// Found by trying random problems: the greedy orders need 20 bytes, and 15 are possible.
TEST(Pack, TheSearchBeatsTheGreedyOrders) {
  const std::vector<Interval> intervals = {{2, 7, 7}, {6, 1, 3}, {9, 4, 4}, {8, 1, 1}, {1, 6, 7}, {5, 5, 7}, {6, 3, 4}};
  const Packing packing = pack(intervals);
  EXPECT_EQ(checked(intervals, packing), "");
  EXPECT_EQ(packing.height, 15u);
}

// The optimum over all orders, with blocks dropped onto those below: exact, and a different algorithm than pack().
std::uint64_t optimum(const std::vector<Interval>& intervals) {
  std::vector<std::size_t> order(intervals.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::uint64_t best = ~std::uint64_t{0};
  std::vector<std::uint64_t> end(intervals.size());
  do {
    std::uint64_t total = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const Interval& a = intervals[order[k]];
      std::uint64_t offset = 0;
      for (std::size_t l = 0; l < k; ++l) {
        const Interval& b = intervals[order[l]];
        if (b.size > 0 && a.first <= b.last && b.first <= a.last) offset = std::max(offset, end[order[l]]);
      }
      offset = (offset + a.alignment - 1) / a.alignment * a.alignment;
      end[order[k]] = offset + a.size;
      if (a.size > 0) total = std::max(total, end[order[k]]);
    }
    best = std::min(best, total);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Pack, SmallProblemsAreSolvedExactly) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Interval> intervals = random_problem(random, 7, 6, 9);
    const Packing packing = pack(intervals);
    ASSERT_EQ(checked(intervals, packing), "") << "round " << round;
    ASSERT_EQ(packing.height, optimum(intervals)) << "round " << round;
    ASSERT_TRUE(packing.is_optimal()) << "round " << round;
  }
}

TEST(Pack, SmallProblemsWithAlignmentsAreSolvedExactly) {
  std::mt19937 random(8);
  for (int round = 0; round < 200; ++round) {
    std::vector<Interval> intervals = random_problem(random, 6, 6, 9);
    for (Interval& interval : intervals) interval.alignment = std::uint64_t{1} << random() % 4;
    const Packing packing = pack(intervals);
    ASSERT_EQ(checked(intervals, packing), "") << "round " << round;
    for (std::size_t i = 0; i < intervals.size(); ++i) ASSERT_EQ(packing.offsets[i] % intervals[i].alignment, 0u);
    ASSERT_EQ(packing.height, optimum(intervals)) << "round " << round;
    ASSERT_TRUE(packing.is_optimal()) << "round " << round;
  }
}

// Compares proofs of exhausted searches, at many ceilings, with the optimum: a search that loses packings would fail.
TEST(Pack, ProofsHold) {
  std::mt19937 random(9);
  for (unsigned round = 0; round < 300; ++round) {
    const std::vector<Interval> intervals = random_problem(random, 7, 4 + round % 9, 3 + round % 5);
    const std::uint64_t least = optimum(intervals);
    Effort effort;
    effort.greedy = 0;  // leaves more to the search
    const Packing packing = pack(intervals, 1, effort);
    ASSERT_EQ(packing.height, least) << "round " << round;
    ASSERT_LE(packing.proven, least) << "round " << round;
    effort.enough = least + round % 3;
    ASSERT_LE(pack(intervals, 1, effort).height, effort.enough) << "round " << round;
    effort.enough = least - 1;
    ASSERT_EQ(pack(intervals, 1, effort).proven > effort.enough, true) << "round " << round;
  }
}

TEST(Pack, NoSlackIsPackedToCapacity) {
  const std::uint32_t step = test::all_cases() ? 1 : test::is_too_slow() ? 6 : 2;
  for (std::uint32_t seed = 1; seed <= 20; seed += step) {
    const std::size_t pieces = 150 + 300 * (seed - 1) / 19;
    // Straight cuts and pinwheels, times that few blocks share and times that many do, few sizes and many.
    for (const test::NoSlack& how :
         {test::NoSlack{1000, 1 << 20, pieces}, test::NoSlack{1'000'000, 1 << 20, pieces, 50},
          test::NoSlack{500, 1000, pieces}, test::NoSlack{1'000'000, 1 << 26, pieces, 10, 256},
          test::NoSlack{1000, 1 << 20, pieces, 0, 1, true}, test::NoSlack{1000, 1 << 20, pieces, 30, 1, true}}) {
      const std::vector<Interval> intervals = test::cut_to_pieces(how, seed);
      ASSERT_GE(intervals.size(), pieces);
      Effort effort;
      effort.search *= 8;
      const Packing packing = pack(intervals, how.unit, effort);
      ASSERT_EQ(checked(intervals, packing, how.unit), "");
      EXPECT_EQ(packing.height, how.capacity)
          << "seed " << seed << ", times " << how.times << ", bound " << packing.lower_bound;
      EXPECT_EQ(packing.lower_bound, how.capacity);
      EXPECT_LE(packing.steps, 2 * effort.search);
    }
  }
}

TEST(Pack, SearchIsNeverWorseThanGreedy) {
  std::mt19937 random(17);
  for (int round = 0; round < 20; ++round) {
    const std::vector<Interval> intervals = random_problem(random, 60 + random() % 200, 60, 1000);
    Effort greedy;
    greedy.search = 0;
    const Packing without = pack(intervals, 1, greedy), with = pack(intervals);
    ASSERT_EQ(checked(intervals, without), "");
    EXPECT_LE(with.height, without.height);
    EXPECT_GE(with.proven, without.proven);
  }
}

TEST(Pack, StopsWhenAskedTo) {
  const std::vector<Interval> intervals = test::cut_to_pieces({40, 1 << 20, 400, 50}, 1);
  Effort effort;
  effort.search = ~std::uint64_t{0};
  int asked = 0;
  effort.stop = [&] { return ++asked >= 3; };
  const Packing packing = pack(intervals, 1, effort);
  EXPECT_GE(asked, 3);
  EXPECT_LE(asked, 6);
  EXPECT_EQ(checked(intervals, packing), "");
}

TEST(Pack, RandomProblemsAreValidAndRepeatable) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    const std::size_t count = 1 + random() % 90;
    const std::vector<Interval> intervals = random_problem(random, count, 40, 1000);
    const std::uint64_t alignment = std::uint64_t{1} << random() % 9;
    const Packing packing = pack(intervals, alignment);
    ASSERT_EQ(checked(intervals, packing, alignment), "") << "round " << round;
    ASSERT_EQ(packing.lower_bound, peak(intervals, alignment)) << "round " << round;
    ASSERT_EQ(packing.offsets, pack(intervals, alignment).offsets) << "round " << round;
  }
}

// `count` blocks; the kind says how their live ranges overlap.
std::vector<Interval> many_blocks(std::string_view kind, std::uint32_t count) {
  std::mt19937 random(3);
  if (kind == "anywhere") return random_problem(random, count, 10 * count, 100'000);
  std::vector<Interval> blocks(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto more = static_cast<std::uint32_t>(random());
    blocks[i] = kind == "activations" ? Interval{256 * (1 + random() % 64), i, i + 1 + more % 40}
                                      : Interval{1 + random() % 1000, i, 2 * count - i + more % 9};
  }
  return blocks;
}

// The search ends at its limit of steps, however many blocks there are.
TEST(Pack, ManyBlocksTakeNoMoreSteps) {
  for (const std::string_view kind : {"activations", "anywhere", "nested"}) {
    for (const std::uint32_t count : {5'000u, 20'000u}) {
      SCOPED_TRACE(fmt::format("{} {}", count, kind));
      const std::vector<Interval> blocks = many_blocks(kind, count);
      const Packing packing = pack(blocks);
      EXPECT_EQ(checked(blocks, packing), "");
      EXPECT_LE(packing.steps, 2 * Effort{}.search);
    }
  }
}

TEST(Pack, BrokenIntervalsAreOurBugs) {
  EXPECT_THROW(pack(std::vector<Interval>{{1, 2, 1}}), std::logic_error);
  EXPECT_THROW(pack(std::vector<Interval>{{~std::uint64_t{0}, 0, 0}}, 64), std::logic_error);
  const std::uint64_t half = std::uint64_t{1} << 63;
  EXPECT_THROW(pack(std::vector<Interval>{{half, 0, 0}, {half, 1, 1}}), std::logic_error);
}

TEST(Validate, NamesTheRuleThatIsBroken) {
  const std::vector<Interval> intervals = {{64, 0, 2}, {32, 2, 4}, {32, 5, 6}};
  using Offsets = std::vector<std::uint64_t>;
  EXPECT_EQ(validate(intervals, Offsets{0, 64, 0}, 96), "");
  EXPECT_EQ(validate(intervals, Offsets{0, 64}, 96), "count: 3 intervals have 2 offsets");
  EXPECT_EQ(validate(intervals, Offsets{32, 96, 0}, 128, 64),
            "alignment: interval 0 (offset 32, size 64, times 0 to 2) is not at a multiple of 64");
  EXPECT_EQ(validate(intervals, Offsets{0, 64, 0}, 95),
            "bounds: interval 1 (offset 64, size 32, times 2 to 4) ends beyond the total of 95");
  EXPECT_EQ(validate(intervals, Offsets{0, 32, 0}, 96),
            "overlap: interval 0 (offset 0, size 64, times 0 to 2) and interval 1 (offset 32, size 32, times 2 to 4) "
            "share bytes while both live");
  EXPECT_EQ(validate(std::vector<Interval>{{1, 2, 1}}, Offsets{0}, 1),
            "lifetime: interval 0 (offset 0, size 1, times 2 to 1) ends before it begins");
  EXPECT_EQ(validate(std::vector<Interval>{{64, 0, 0}}, Offsets{~std::uint64_t{0} - 31}, ~std::uint64_t{0}),
            "bounds: interval 0 (offset 18446744073709551584, size 64, times 0 to 0) ends beyond the total of "
            "18446744073709551615");
}

TEST(Validate, FindsEveryPlantedOverlap) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    std::vector<Interval> intervals = random_problem(random, 30, 20, 100);
    for (Interval& i : intervals) ++i.size;
    Packing packing = pack(intervals);
    // Move one block onto another that is live at the same time.
    const std::size_t a = random() % 30;
    for (std::size_t b = 0; b < 30; ++b) {
      if (b == a || intervals[a].last < intervals[b].first || intervals[b].last < intervals[a].first) continue;
      packing.offsets[a] = packing.offsets[b];
      ASSERT_NE(validate(intervals, packing.offsets, 2 * packing.height), "") << "round " << round;
      break;
    }
  }
}

}  // namespace
}  // namespace graphrun::plan
