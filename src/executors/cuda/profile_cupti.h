// profile_cupti.h: NVIDIA's profiling library CUPTI, opened on demand for a profile and never required.
// Contract: watches the entire process (its runtime calls, kernels, copies), one profile at a time. Graphs are traced
// as a whole, which keeps the overhead low: kernels inside are not reported. CUPTI's own threads parse records as
// buffers are returned. Not here: fallback without CUPTI (profile.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "graphrun/profile.h"

namespace graphrun::cuda {

class Cupti {
 public:
  // Null with the reason if it cannot be used.
  static std::unique_ptr<Cupti> open(std::string& why_not);
  virtual ~Cupti() = default;

  virtual std::string version() const = 0;  // "13.0.1"
  // Assigns kernels that start in between to this group; the stream must be idle at both ends.
  virtual void begin_group(std::string_view group) = 0;
  virtual void end_group() = 0;
  // Adds a time measured elsewhere that CUPTI does not see; `start` is a time of Profiler::now().
  virtual void add(std::string_view group, std::string_view name, double start, double duration) = 0;
  virtual Profile take() = 0;
};

}  // namespace graphrun::cuda
