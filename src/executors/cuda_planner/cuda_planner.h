// cuda_planner.h: the CUDA executor as far as plans go: which steps its kernels run, the scratch they ask for, how
// they read operands, and how regions run.
// Contract: pure functions of (signature, machine numbers) without a CUDA header: a build that has no CUDA plans for a
// GPU with the same bytes as one that has it.
// Leaves to others: the kernels (kernels/cuda/launcher.h), running them (executors/cuda).
#pragma once

#include "graphrun/executor.h"

namespace graphrun::cuda {

struct Machine;  // kernels/cuda/launcher.h

// Of an op that a step may have: whether find_kernel() of kernels/cuda finds one.
bool has_kernel(Op op);

Support supports(const StepSignature& step, const Machine& machine);

class CudaPlanner : public Executor {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string_view default_target() const override { return "h200"; }
  Support supports(const StepSignature& step, const Target& target) const override;
  bool takes_views(const StepSignature& step) const override;
  RegionPlan plan_region(const RegionSignature& region, const Target& target) const override;
  std::string generated_source(const Program& program) const override;
};

}  // namespace graphrun::cuda
