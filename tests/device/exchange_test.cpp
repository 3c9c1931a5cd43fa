// The all-reduce of the tile headers on a device: the bits of loops on the host, and waits for a block that is silent.
#include "exchange_kernels.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "device.h"
#include "emulation/exchange_loops.h"

namespace graphrun::testing {
namespace {

std::string text(const ExchangeCase& shape) {
  return std::to_string(shape.values) + " values, " + std::to_string(shape.threads) + " threads, " +
         std::to_string(shape.clusters) + " x " + std::to_string(shape.cluster) + " blocks";
}

TEST_F(Device, AllReducesHaveTheBitsOfLoops) {
  constexpr unsigned kEpochs = 1000;
  for (std::size_t i = 0; i < exchange_cases().size(); ++i) {
    const ExchangeCase& shape = exchange_cases()[i];
    const ExchangeRun run = run_exchange(i, kEpochs);
    ASSERT_EQ(run.error, "") << text(shape);
    if (!run.fits) {
      std::printf("%s: no place on this device\n", text(shape).c_str());
      continue;
    }
    ASSERT_EQ(run.fault, 0u) << text(shape);
    std::printf("%s: %.2f us an epoch, parts and all\n", text(shape).c_str(), run.seconds / kEpochs * 1e6);
    const auto values = static_cast<std::size_t>(shape.values);
    const int blocks = shape.cluster * shape.clusters;
    const unsigned every = shape.values * shape.threads * blocks < 100000 ? 1 : 50;  // the host is slow
    const float* got = run.totals.data();
    for (unsigned epoch = 1; epoch <= kEpochs; ++epoch) {
      const float* const first = got;
      for (int block = 0; block < blocks; ++block, got += values)
        ASSERT_EQ(std::memcmp(got, first, values * sizeof(float)), 0)
            << text(shape) << ": epoch " << epoch << ", blocks 0 and " << block << " differ";
      if (epoch % every != 0) continue;
      const std::vector<float> want =
          cuda::tile::totals_of(shape.values, shape.threads, shape.cluster, shape.clusters, epoch);
      for (std::size_t v = 0; v < values; ++v)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(first[v]), std::bit_cast<std::uint32_t>(want[v]))
            << text(shape) << ": epoch " << epoch << " value " << v << " is " << first[v] << ", not " << want[v];
    }
  }
}

TEST_F(Device, DeviceWaitsForASilentBlockEnd) {
  for (std::size_t i = 0; i < exchange_cases().size(); ++i) {
    const ExchangeCase& shape = exchange_cases()[i];
    if (shape.cluster * shape.clusters == 1) continue;
    const ExchangeRun run = run_exchange(i, 10, true);
    ASSERT_EQ(run.error, "") << text(shape);
    if (!run.fits) continue;
    EXPECT_NE(run.fault, 0u) << text(shape);
    EXPECT_GT(run.seconds, 1.9) << text(shape) << ": it did not wait";  // a busy machine only waits longer
    const ExchangeRun after = run_exchange(i, 10);
    EXPECT_EQ(after.error, "") << "the device is lost";
    EXPECT_EQ(after.fault, 0u);
  }
}

}  // namespace
}  // namespace graphrun::testing
