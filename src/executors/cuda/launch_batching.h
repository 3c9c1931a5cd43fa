// launch_batching.h: chooses the number of steps of a phase's next launch from the time of earlier launches.
// Contract: after the first launch, each takes at most kLaunchSeconds or is a single step, as far as step times are
// constant, so that a run can be interrupted and does not hold up other work on the device. The batching changes no
// result. Not here: time measurement (in_flight.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace graphrun::cuda {

class LaunchBatching {
 public:
  static constexpr double kLaunchSeconds = 0.05;

  explicit LaunchBatching(std::size_t launches);  // launches per step

  std::uint32_t unroll() const { return unroll_; }  // steps in the body of a graph's block loop
  std::uint64_t steps_per_launch() const;           // upper limit; whole blocks if they fit
  void took(std::uint64_t steps, double seconds);   // reports a launch

 private:
  std::uint32_t unroll_ = 1;
  std::uint64_t most_ = 1;
};

}  // namespace graphrun::cuda
