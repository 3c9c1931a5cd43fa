#include "executors/ref/ref_executor.h"

#include "kernels/ref.h"

namespace graphrun {

HostKernel RefExecutor::kernel(const StepSignature& step) const {
  return {ref_kernel(step.op), ref_workspace(step.op, step.output)};
}

bool RefExecutor::takes_views(const StepSignature& step) const {
  return step.views_keep_axes() && ref_takes_views(step.op);
}

DeviceList RefExecutor::devices() const {
  Device host;
  host.id = "ref";
  host.name = "the host, in plain loops: the reference for the others";
  host.capability = "double";
  host.units = 1;
  return {{host}, {}};
}

}  // namespace graphrun
