#include "executors/cuda/launch_batching.h"

#include <algorithm>
#include <bit>

namespace graphrun::cuda {
namespace {

constexpr std::uint64_t kMaxSteps = 1u << 16;
constexpr std::uint64_t kGrowth = 8;        // few steps predict the time of many poorly
constexpr std::size_t kNodesOfBlock = 128;  // a loop iteration costs about a kernel; this hides it
constexpr std::uint32_t kMaxUnrolled = 16;

}  // namespace

LaunchBatching::LaunchBatching(std::size_t launches)
    : unroll_(static_cast<std::uint32_t>(
          std::clamp<std::size_t>(kNodesOfBlock / std::max<std::size_t>(launches, 1), 1, kMaxUnrolled))) {}

std::uint64_t LaunchBatching::steps_per_launch() const {
  return most_ >= unroll_ ? most_ / unroll_ * unroll_ : most_;
}

void LaunchBatching::took(std::uint64_t steps, double seconds) {
  const double fitting = static_cast<double>(steps) * kLaunchSeconds / std::max(seconds, 1e-9);
  const double known = static_cast<double>(std::max(most_, steps * kGrowth));
  const double wanted = std::clamp(std::min(fitting, known), 1.0, double{kMaxSteps});
  // A power of two, so that noise in the times does not change it and the counts on the device.
  most_ = std::bit_floor(static_cast<std::uint64_t>(wanted));
}

}  // namespace graphrun::cuda
