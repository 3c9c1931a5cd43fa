#include "executors/cuda/pace.h"

#include <algorithm>

namespace graphrun::cuda {
namespace {

constexpr double kLaunchSeconds = 0.05;
// Rough on purpose, and low for rates: a launch that turns out shorter costs nothing.
constexpr double kKernelSeconds = 3e-6;
constexpr double kBytesPerSecond = 2e12;
constexpr double kProductsPerSecond = 1e13;
constexpr std::uint64_t kMostSteps = 1u << 16;
constexpr std::size_t kNodesOfBlock = 128;  // a turn of a loop costs about a kernel; this hides it

double seconds_of(const Program& program, const Step& step) {
  const auto elements = [&](BufferId id) { return static_cast<double>(program.buffers[id].type.shape.elements()); };
  double bytes = static_cast<double>(program.buffers[step.output].type.bytes());
  for (const BufferId input : step.inputs) bytes += static_cast<double>(program.buffers[input].type.bytes());
  double products = 0;
  if (const auto* matmul = std::get_if<MatmulParams>(&step.params); matmul != nullptr && !step.inputs.empty()) {
    const Shape& a = program.buffers[step.inputs[0]].type.shape;
    const int inner = a.rank() - (matmul->transpose_a ? 2 : 1);
    products = elements(step.output) * (inner >= 0 ? static_cast<double>(a[inner]) : 1.0);
  }
  return std::max(bytes / kBytesPerSecond, products / kProductsPerSecond);
}

}  // namespace

Pace pace_of(const Program& program, const Phase& phase, std::size_t launches) {
  double seconds = kKernelSeconds * static_cast<double>(launches + 1);
  for (const Step& step : phase.steps) seconds += seconds_of(program, step);
  Pace pace;
  const auto fitting = static_cast<std::uint64_t>(std::clamp(kLaunchSeconds / seconds, 1.0, double{kMostSteps}));
  const std::size_t nodes = std::max<std::size_t>(launches, 1);
  pace.unroll = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kNodesOfBlock / nodes, 1, 16));
  pace.unroll = static_cast<std::uint32_t>(std::min<std::uint64_t>(pace.unroll, fitting));
  pace.steps_per_launch = fitting / pace.unroll * pace.unroll;
  return pace;
}

}  // namespace graphrun::cuda
