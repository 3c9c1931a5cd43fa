// ref_executor.h: the reference executor: one plain kernel a step, in double. What others are compared with.
// Contract: executor.h; every op of the library in every dtype. It is also the template for a new executor.
// Leaves to others: what the ops compute (kernels/ref.h), speed (executors/cpu).
#pragma once

#include <atomic>

#include "graphrun/executor.h"

namespace graphrun {

class RefExecutor final : public Executor {
 public:
  std::string_view name() const override { return "ref"; }
  std::string_view default_target() const override { return "host"; }
  Support supports(const StepSignature& step, const Target& target) const override;
  void set_profiling(Profiling profiling) override { profiling_ = profiling; }
  std::unique_ptr<Runnable> load(const Program& program) override;
  DeviceList devices() const override;

 private:
  std::atomic<Profiling> profiling_{Profiling::off};
};

}  // namespace graphrun
