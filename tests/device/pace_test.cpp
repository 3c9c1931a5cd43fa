// How many steps a launch runs: one at first, then as many as fit into its time. Needs no device.
#include "executors/cuda/pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace graphrun::cuda {
namespace {

// Launches one after the other of steps that take so long; gives the longest, in seconds.
double longest_launch(Pace& pace, double step, int launches) {
  double longest = 0;
  for (int i = 0; i < launches; ++i) {
    const std::uint64_t steps = pace.steps_per_launch();
    const double seconds = static_cast<double>(steps) * step;
    longest = std::max(longest, seconds);
    pace.took(steps, seconds);
  }
  return longest;
}

TEST(Pace, AFirstLaunchIsOneStep) {
  for (const std::size_t launches : {std::size_t{0}, std::size_t{1}, std::size_t{12}, std::size_t{5000}})
    EXPECT_EQ(Pace(launches).steps_per_launch(), 1u);
}

TEST(Pace, LaunchesTakeAtMostTheirTimeOrAreOneStep) {
  for (const double step : {1e-7, 2e-6, 1.9e-5, 4e-4, 2.3e-2, 0.049, 0.2}) {
    SCOPED_TRACE(step);
    Pace pace(30);
    EXPECT_LE(longest_launch(pace, step, 20), std::max(step, Pace::kLaunchSeconds));
    const double last = static_cast<double>(pace.steps_per_launch()) * step;
    EXPECT_GE(last, std::min(Pace::kLaunchSeconds / 2, 65536 * step) * 0.9) << "few turns of the host";
  }
}

TEST(Pace, FollowsStepsThatBecomeSlower) {
  Pace pace(30);
  longest_launch(pace, 1e-5, 20);
  longest_launch(pace, 1e-2, 1);
  EXPECT_LE(longest_launch(pace, 1e-2, 20), Pace::kLaunchSeconds);
  EXPECT_GE(pace.steps_per_launch(), 2u);
}

// A run of a single step is timed with all that surrounds it: that says little of a launch of many.
TEST(Pace, ASingleStepDoesNotMakeTheNextRunSlow) {
  Pace pace(12);
  longest_launch(pace, 1e-5, 20);
  for (int i = 0; i < 100; ++i) pace.took(1, 4e-5);
  EXPECT_GE(pace.steps_per_launch(), 512u);
}

TEST(Pace, TheSameTimeGivesTheSameLaunch) {
  Pace pace(12);
  longest_launch(pace, 2e-5, 20);
  const std::uint64_t steps = pace.steps_per_launch();
  EXPECT_EQ(steps % pace.unroll(), 0u) << "whole blocks";
  for (const double tremble : {1.02, 0.98, 1.1, 0.9}) {
    longest_launch(pace, 2e-5 * tremble, 1);
    EXPECT_EQ(pace.steps_per_launch(), steps);
  }
}

TEST(Pace, ABlockHoldsABoundedNumberOfLaunches) {
  EXPECT_EQ(Pace(0).unroll(), 16u);
  EXPECT_EQ(Pace(12).unroll(), 10u);
  EXPECT_EQ(Pace(1000).unroll(), 1u);
}

}  // namespace
}  // namespace graphrun::cuda
