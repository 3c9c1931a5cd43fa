// The all-reduce of src/kernels/cuda/tile/exchange.h on the emulator: bitwise equal to plain loops under random
// schedules, and every planted fault is detected.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "emulation/exchange_cases.h"
#include "emulation/exchange_loops.h"
#include "emulation/machine.h"
#include "support/rounds.h"

namespace graphrun::cuda::tile {
namespace {

using emulation::Fault;
using emulation::Planted;

struct Ran {
  std::string failure;  // reported by the emulator, or ""
  unsigned fault = 0;
  std::vector<float> totals;
};

template <class Case>
Ran run(std::uint64_t seed, unsigned epochs, Planted planted = {}, bool time_passes = false, bool old_scratch = false,
        unsigned silent = ~0u) {
  Ran ran;
  ran.totals.assign(std::size_t{epochs} * Case::kBlocks * Case::kValueCount, -77.0f);
  // Aligned to 128 bytes and without excess bytes, for the address sanitizer.
  std::unique_ptr<void, void (*)(void*)> scratch(
      std::aligned_alloc(128, (Case::Reduce::kScratchBytes + 127) / 128 * 128), std::free);
  if (Case::Reduce::kScratchBytes != 0) std::memset(scratch.get(), 0, Case::Reduce::kScratchBytes);
  for (unsigned i = 0; old_scratch && i < Case::Reduce::kScratchBytes / sizeof(Packet); ++i)
    static_cast<Packet*>(scratch.get())[i] = {{}, 1};
  emulation::Launch launch{
      Case::kBlocks, Case::kClusterSize, Case::kThreadCount, sizeof(typename Case::Reduce::Shared), seed, time_passes,
      planted};
  const CaseArgs args{ran.totals.data(), scratch.get(), &ran.fault, epochs, silent};
  try {
    emulation::launch<CaseArgs>(launch, &Case::kernel, args);
  } catch (const emulation::Failure& failure) {
    ran.failure = failure.what();
  }
  return ran;
}

// Expected totals of all epochs, equal for each block, from plain loops.
template <class Case>
std::vector<float> wanted(unsigned epochs) {
  std::vector<float> all;
  for (unsigned epoch = 1; epoch <= epochs; ++epoch) {
    const std::vector<float> totals =
        totals_of(Case::kValueCount, Case::kThreadCount, Case::kClusterSize, Case::kClusterCount, epoch);
    for (int block = 0; block < Case::kBlocks; ++block) all.insert(all.end(), totals.begin(), totals.end());
  }
  return all;
}

// Returns "" or the first total that differs.
template <class Case>
std::string difference(const Ran& ran, const std::vector<float>& want) {
  if (!ran.failure.empty()) return ran.failure;
  if (ran.fault != 0) return "a wait gave up: " + std::to_string(ran.fault);
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(ran.totals[i]) == std::bit_cast<std::uint32_t>(want[i])) continue;
    const std::size_t v = i % Case::kValueCount, block = i / Case::kValueCount % Case::kBlocks;
    return "value " + std::to_string(v) + " of block " + std::to_string(block) + " in epoch " +
           std::to_string(i / Case::kValueCount / Case::kBlocks + 1) + " is " + std::to_string(ran.totals[i]) +
           ", not " + std::to_string(want[i]);
  }
  return "";
}

template <class Case>
class Exchange : public ::testing::Test {};
using Cases = ::testing::Types<
    // a block
    Case<1, 32, 1, 1>, Case<25, 128, 1, 1>, Case<100, 96, 1, 1>, Case<181, 64, 1, 1>, Case<7, 256, 1, 1>,
    // a cluster
    Case<1, 32, 4, 1>, Case<7, 64, 8, 1>, Case<25, 96, 4, 1>, Case<100, 32, 8, 1>, Case<181, 64, 4, 1>,
    Case<25, 256, 4, 1>,
    // a grid without clusters
    Case<1, 64, 1, 3>, Case<25, 32, 1, 15>, Case<100, 64, 1, 3>, Case<181, 32, 1, 3>, Case<7, 32, 1, 37>,
    // a grid of clusters
    Case<1, 32, 4, 3>, Case<7, 32, 8, 3>, Case<25, 96, 4, 3>, Case<100, 64, 4, 3>, Case<181, 32, 4, 3>,
    Case<25, 32, 8, 15>, Case<400, 32, 4, 3>>;
TYPED_TEST_SUITE(Exchange, Cases);

TYPED_TEST(Exchange, HasTheBitsOfLoopsUnderEverySchedule) {
  constexpr unsigned kEpochs = 5;
  const std::vector<float> want = wanted<TypeParam>(kEpochs);
  for (std::uint64_t seed = 0; seed < test::cases(20); ++seed) {
    ASSERT_EQ(difference<TypeParam>(run<TypeParam>(seed, kEpochs), want), "") << "seed " << seed;
  }
}

TEST(ExchangeFaults, SumsOfNothingButMinusZeroAreMinusZero) {
  using Small = Case<7, 32, 4, 3>;
  const Ran ran = run<Small>(0, 1);
  EXPECT_TRUE(std::signbit(ran.totals[2]));
}

// Returns how the fault is detected under one of thirty schedules: deadlock or different bits; "" if it is not.
template <class Case>
std::string noticed(Planted planted, unsigned epochs = 5) {
  const std::vector<float> want = wanted<Case>(epochs);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    std::string what = difference<Case>(run<Case>(seed, epochs, planted), want);
    if (!what.empty()) return what;
  }
  return "";
}

using Block = Case<25, 128, 1, 1>;
using Cluster = Case<25, 64, 4, 1>;
using Grid = Case<25, 64, 4, 3>;
using Wide = Case<181, 64, 4, 3>;
using NoClusters = Case<25, 64, 1, 3>;

TEST(ExchangeFaults, AreNoticed) {
  const auto waits = [](const std::string& what) { return what.find("all threads wait") != std::string::npos; };
  EXPECT_TRUE(waits(noticed<Cluster>({Fault::lost_store, 1, 9})));
  EXPECT_TRUE(waits(noticed<Grid>({Fault::lost_store, 5, 3})));
  EXPECT_TRUE(waits(noticed<Grid>({Fault::lost_packet, 5, 1})));
  EXPECT_TRUE(waits(noticed<NoClusters>({Fault::lost_packet, 2, 3})));
  EXPECT_TRUE(waits(noticed<Grid>({Fault::stale_packet, 5, 1})));
  EXPECT_TRUE(waits(noticed<NoClusters>({Fault::stale_packet, 1, 0})));
  EXPECT_NE(noticed<Cluster>({Fault::wrong_parity, 2, 0}), "");
  EXPECT_NE(noticed<Cluster>({Fault::wrong_parity, 2, 7}), "");
  EXPECT_NE(noticed<Grid>({Fault::wrong_parity, 2, 0}), "");
  EXPECT_NE(noticed<Cluster>({Fault::wrong_rank, 1, 0}), "");
  EXPECT_NE(noticed<Grid>({Fault::wrong_rank, 1, 0}), "");
  EXPECT_NE(noticed<Cluster>({Fault::swapped_store, 3, 2}), "");
  EXPECT_NE(noticed<Grid>({Fault::swapped_store, 3, 2}), "");
  EXPECT_NE(noticed<Wide>({Fault::swapped_packets, 3, 2}), "");
}

// Every barrier of an epoch is necessary. The last of an epoch is the caller's, which a block and a cluster need;
// totals of a grid are written only after the block's own next parts.
TEST(ExchangeFaults, EveryBarrierIsNeeded) {
  if (test::is_too_slow()) GTEST_SKIP() << "takes minutes under a sanitizer: runs in builds without one";
  for (unsigned nth : {0u, 1u, 2u, 3u}) EXPECT_NE(noticed<Block>({Fault::no_barrier, 0, nth}), "") << nth;
  for (unsigned nth : {0u, 1u, 2u, 3u}) EXPECT_NE(noticed<Cluster>({Fault::no_barrier, 0, nth}), "") << nth;
  for (unsigned nth : {0u, 1u, 3u, 4u}) EXPECT_NE(noticed<Grid>({Fault::no_barrier, 0, nth}), "") << nth;
  for (unsigned nth : {0u, 1u, 2u, 4u, 5u, 6u}) EXPECT_NE(noticed<Wide>({Fault::no_barrier, 0, nth}), "") << nth;
  for (unsigned nth : {0u, 1u, 2u}) EXPECT_NE(noticed<NoClusters>({Fault::no_barrier, 0, nth}), "") << nth;
  EXPECT_NE(noticed<Cluster>({Fault::no_cluster_barrier, 0, 0}), "");
}

TEST(ExchangeFaults, PacketsOfALaunchBeforeAreNoticed) {
  EXPECT_NE(difference<Grid>(run<Grid>(0, 2, {}, false, true), wanted<Grid>(2)), "");
}

TEST(ExchangeFaults, OneValueTooFewIsNoticed) {
  Ran ran = run<Case<24, 64, 4, 3>>(0, 1);
  ran.totals.resize(12 * 25, -77.0f);
  EXPECT_NE(difference<Grid>(ran, wanted<Grid>(1)), "");
}

// With a clock, a wait for a lost store times out, and so does the launch.
TEST(ExchangeFaults, WaitsGiveUp) {
  bool early = false;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Ran ran = run<Case<25, 32, 4, 1>>(seed, 4, {Fault::lost_store, 1, 9}, true);
    EXPECT_EQ(ran.failure, "");
    EXPECT_EQ(ran.fault, static_cast<unsigned>(WaitFor::cluster));
    ran = run<Case<25, 32, 4, 3>>(seed, 4, {Fault::lost_packet, 5, 1}, true);
    EXPECT_EQ(ran.failure, "");
    EXPECT_NE(ran.fault, 0u);
    ran = run<Case<25, 32, 1, 3>>(seed, 4, {Fault::lost_packet, 2, 1}, true);
    EXPECT_EQ(ran.failure, "");
    EXPECT_EQ(ran.fault, static_cast<unsigned>(WaitFor::grid));
    ran = run<Case<25, 32, 4, 1>>(seed, 4, {}, true, false, 3);
    EXPECT_EQ(ran.failure, "");
    EXPECT_EQ(ran.fault, static_cast<unsigned>(WaitFor::cluster)) << "a silent block";
    // Without the barrier at its end, a block exits while stores to it are in flight.
    ran = run<Case<25, 32, 4, 1>>(seed, 4, {Fault::no_cluster_barrier, 0, 1}, true, false, 3);
    early = early || ran.failure.find("which has ended") != std::string::npos;
  }
  EXPECT_TRUE(early);
}

}  // namespace
}  // namespace graphrun::cuda::tile
