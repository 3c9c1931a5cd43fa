// launch_batching.h: how many steps the next launch of a phase runs, by how long those before it took.
// Contract: once it has been told of a launch, the next takes at most kLaunchSeconds, or is a single step, as far as
// steps keep their time: so that a run can be interrupted and other work on the device is not held up. The batching
// changes no result. Leaves to others: telling time (in_flight.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace graphrun::cuda {

class LaunchBatching {
 public:
  static constexpr double kLaunchSeconds = 0.05;

  explicit LaunchBatching(std::size_t launches);  // of one step

  std::uint32_t unroll() const { return unroll_; }  // steps in the body of the block loop of a graph
  std::uint64_t steps_per_launch() const;           // at most; whole blocks, where they fit
  void took(std::uint64_t steps, double seconds);   // a launch

 private:
  std::uint32_t unroll_ = 1;
  std::uint64_t most_ = 1;
};

}  // namespace graphrun::cuda
