// executor.h: the CUDA executor.
// Contract: name(), default_target(), supports() and region_choices() need no driver; load() opens the device.
#pragma once

#include <atomic>

#include "executors/cuda_planner/cuda_planner.h"

namespace graphrun::cuda {

class CudaExecutor final : public CudaPlanner {
 public:
  explicit CudaExecutor(int device) : device_(device) {}

  void set_profiling(Profiling profiling) override { profiling_ = profiling; }
  std::unique_ptr<Runnable> load(const Program& program) override;
  DeviceList devices() const override;

 private:
  int device_;
  std::atomic<Profiling> profiling_{Profiling::off};
};

}  // namespace graphrun::cuda
