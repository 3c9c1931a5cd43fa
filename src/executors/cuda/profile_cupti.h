// profile_cupti.h: NVIDIA's profiling library, CUPTI, opened when a profile is wanted and never required.
// Contract: watches the whole process (all its calls of the runtime, kernels, copies), one profile at a time. Graphs
// are traced as a whole, which keeps the cost low: kernels inside are not reported. Its records are parsed as its
// buffers come back, on threads of its own. Leaves to others: what to do where it cannot be used (profile.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "graphrun/profile.h"

namespace graphrun::cuda {

class Cupti {
 public:
  // Null where it cannot be used, with the reason.
  static std::unique_ptr<Cupti> open(std::string& why_not);
  virtual ~Cupti() = default;

  virtual std::string version() const = 0;  // "13.0.1"
  // Kernels that start in between belong to this group; the stream is idle at both ends.
  virtual void begin_group(std::string_view group) = 0;
  virtual void end_group() = 0;
  // What CUPTI does not see, measured elsewhere; `start` as Profiler::now() tells it.
  virtual void add(std::string_view group, std::string_view name, double start, double duration) = 0;
  virtual Profile take() = 0;
};

}  // namespace graphrun::cuda
