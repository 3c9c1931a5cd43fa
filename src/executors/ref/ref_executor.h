// ref_executor.h: the reference executor: one plain kernel a step, in double. What others are compared with.
// Contract: host_executor.h; every op of the library in every dtype.
// Leaves to others: what the ops compute (kernels/ref.h), speed (executors/cpu).
#pragma once

#include "graphrun/host_executor.h"

namespace graphrun {

class RefExecutor final : public HostExecutor {
 public:
  std::string_view name() const override { return "ref"; }
  bool is_reference() const override { return true; }
  HostKernel kernel(const StepSignature& step) const override;
  bool takes_views(const StepSignature& step) const override;
  DeviceList devices() const override;
};

}  // namespace graphrun
