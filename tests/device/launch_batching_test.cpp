// How many steps a launch runs: one at first, then as many as fit into its time. Needs no device.
#include "executors/cuda/launch_batching.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace graphrun::cuda {
namespace {

// Launches one after the other of steps that take so long; gives the longest, in seconds.
double longest_launch(LaunchBatching& batching, double step, int launches) {
  double longest = 0;
  for (int i = 0; i < launches; ++i) {
    const std::uint64_t steps = batching.steps_per_launch();
    const double seconds = static_cast<double>(steps) * step;
    longest = std::max(longest, seconds);
    batching.took(steps, seconds);
  }
  return longest;
}

TEST(LaunchBatching, AFirstLaunchIsOneStep) {
  for (const std::size_t launches : {std::size_t{0}, std::size_t{1}, std::size_t{12}, std::size_t{5000}})
    EXPECT_EQ(LaunchBatching(launches).steps_per_launch(), 1u);
}

TEST(LaunchBatching, LaunchesTakeAtMostTheirTimeOrAreOneStep) {
  for (const double step : {1e-7, 2e-6, 1.9e-5, 4e-4, 2.3e-2, 0.049, 0.2}) {
    SCOPED_TRACE(step);
    LaunchBatching batching(30);
    EXPECT_LE(longest_launch(batching, step, 20), std::max(step, LaunchBatching::kLaunchSeconds));
    const double last = static_cast<double>(batching.steps_per_launch()) * step;
    EXPECT_GE(last, std::min(LaunchBatching::kLaunchSeconds / 2, 65536 * step) * 0.9) << "few turns of the host";
  }
}

TEST(LaunchBatching, FollowsStepsThatBecomeSlower) {
  LaunchBatching batching(30);
  longest_launch(batching, 1e-5, 20);
  longest_launch(batching, 1e-2, 1);
  EXPECT_LE(longest_launch(batching, 1e-2, 20), LaunchBatching::kLaunchSeconds);
  EXPECT_GE(batching.steps_per_launch(), 2u);
}

// A run of a single step is timed with all that surrounds it: that says little of a launch of many.
TEST(LaunchBatching, ASingleStepDoesNotMakeTheNextRunSlow) {
  LaunchBatching batching(12);
  longest_launch(batching, 1e-5, 20);
  for (int i = 0; i < 100; ++i) batching.took(1, 4e-5);
  EXPECT_GE(batching.steps_per_launch(), 256u);
}

TEST(LaunchBatching, TheSameTimeGivesTheSameLaunch) {
  LaunchBatching batching(12);
  longest_launch(batching, 2e-5, 20);
  const std::uint64_t steps = batching.steps_per_launch();
  EXPECT_EQ(steps % batching.unroll(), 0u) << "whole blocks";
  for (const double tremble : {1.02, 0.98, 1.1, 0.9}) {
    longest_launch(batching, 2e-5 * tremble, 1);
    EXPECT_EQ(batching.steps_per_launch(), steps);
  }
}

TEST(LaunchBatching, ABlockHoldsABoundedNumberOfLaunches) {
  EXPECT_EQ(LaunchBatching(0).unroll(), 16u);
  EXPECT_EQ(LaunchBatching(12).unroll(), 10u);
  EXPECT_EQ(LaunchBatching(1000).unroll(), 1u);
}

}  // namespace
}  // namespace graphrun::cuda
