// executor.h: CUDA as graphrun sees it.
// Contract: name(), default_target(), supports() and plan_region() need no driver; load() opens the device.
#pragma once

#include <atomic>

#include "graphrun/executor.h"

namespace graphrun::cuda {

class CudaExecutor final : public Executor {
 public:
  explicit CudaExecutor(int device) : device_(device) {}

  std::string_view name() const override { return "cuda"; }
  std::string_view default_target() const override { return "h200"; }
  Support supports(const StepSignature& step, const Target& target) const override;
  RegionPlan plan_region(const RegionSignature& region, const Target& target) const override;
  void set_profiling(Profiling profiling) override { profiling_ = profiling; }
  std::unique_ptr<Runnable> load(const Program& program) override;
  DeviceList devices() const override;

 private:
  int device_;
  std::atomic<Profiling> profiling_{Profiling::off};
};

}  // namespace graphrun::cuda
