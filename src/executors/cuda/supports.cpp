// supports.cpp: apart from the rest of the executor, so that nothing of the CUDA runtime is within reach.
#include "executors/cuda/executor.h"
#include "kernels/cuda/support.h"

namespace graphrun::cuda {

Support CudaExecutor::supports(const StepSignature& step, const Target& target) const {
  if (target.multiprocessors <= 0) return Support::no("the target is no CUDA device");
  const Machine machine{target.multiprocessors, target.library_workspace};
  Verdict found = verdict(step.op, step.params, step.inputs, step.output, machine);
  if (!found.reason.empty()) return Support::no(std::move(found.reason));
  return Support::with_workspace(found.workspace_bytes);
}

}  // namespace graphrun::cuda
