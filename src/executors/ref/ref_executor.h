// ref_executor.h: the reference executor for comparisons: one plain kernel per step, in double.
// Contract: that of executors/common/host_executor.h; supports every op of the library in every dtype.
// Not here: the kernels (kernels/ref.h), speed (executors/cpu).
#pragma once

#include "executors/common/host_executor.h"

namespace graphrun {

class RefExecutor final : public HostExecutor {
 public:
  std::string_view name() const override { return "ref"; }
  bool is_reference() const override { return true; }
  HostKernel kernel(const StepSignature& step) const override;
  bool takes_views(const StepSignature& step) const override;
  bool takes_codes() const override { return true; }
  DeviceList devices() const override;
};

}  // namespace graphrun
