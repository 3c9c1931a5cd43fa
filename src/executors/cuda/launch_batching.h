// launch_batching.h: chooses the number of steps of a phase's next launch from the time of earlier launches.
// Contract: after the first launch, each takes at most kLaunchSeconds or is a single step, as far as step times are
// constant, so that a run can be interrupted and does not hold up other work on the device. The batching changes no
// result. Not here: time measurement (in_flight.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace graphrun::cuda {

class LaunchBatching {
 public:
  static constexpr double kLaunchSeconds = 0.05;

  // `launches` per step. `from_host`: the host makes each of them, and must not fill the device's queue.
  explicit LaunchBatching(std::size_t launches, bool from_host = false)
      : limit_(from_host ? std::max<std::uint64_t>(kQueued / std::max<std::size_t>(launches, 1), 1) : kMaxSteps),
        unroll_(from_host ? 1
                          : static_cast<std::uint32_t>(std::clamp<std::size_t>(
                                kNodesOfBlock / std::max<std::size_t>(launches, 1), 1, kMaxUnrolled))) {}

  std::uint32_t unroll() const { return unroll_; }  // steps in the body of a graph's block loop
  // Upper limit; whole blocks if they fit.
  std::uint64_t steps_per_launch() const { return max_ >= unroll_ ? max_ / unroll_ * unroll_ : max_; }
  // Reports a launch.
  void took(std::uint64_t steps, double seconds) {
    const double fitting = static_cast<double>(steps) * kLaunchSeconds / std::max(seconds, 1e-9);
    const double known = static_cast<double>(std::max(max_, steps * kGrowth));
    const double wanted = std::clamp(std::min(fitting, known), 1.0, static_cast<double>(limit_));
    // A power of two, so that noise in the times does not change it and the counts on the device.
    max_ = std::bit_floor(static_cast<std::uint64_t>(wanted));
  }

 private:
  static constexpr std::uint64_t kMaxSteps = 1u << 16;
  static constexpr std::uint64_t kGrowth = 8;        // few steps predict the time of many poorly
  static constexpr std::size_t kNodesOfBlock = 128;  // a loop iteration costs about a kernel; this hides it
  static constexpr std::uint32_t kMaxUnrolled = 16;
  static constexpr std::uint64_t kQueued = 256;  // twice, and the queue has about 1,000

  std::uint64_t limit_;
  std::uint32_t unroll_ = 1;
  std::uint64_t max_ = 1;
};

}  // namespace graphrun::cuda
