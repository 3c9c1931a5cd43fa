// cuda_planner.h: planning half of the CUDA executor: supported steps, their scratch, operand views, and region plans.
// Contract: pure functions of signature and machine numbers, without CUDA headers. A build without CUDA plans for a GPU
// with the same bytes as a build with it.
// Not here: the kernels (kernels/cuda/launcher.h), running them (executors/cuda).
#pragma once

#include "graphrun/executor.h"

namespace graphrun::cuda {

struct Machine;  // kernels/cuda/launcher.h

// Whether find_kernel() of kernels/cuda finds a kernel for an op that a step may have.
bool has_kernel(Op op);

// Numbers of a GPU that kernels depend on.
Machine machine_of(const Target& target);

Support supports(const StepSignature& step, const Machine& machine);

class CudaPlanner : public Executor {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string_view default_target() const override { return "h200"; }
  Support supports(const StepSignature& step, const Target& target) const override;
  bool takes_views(const StepSignature& step) const override;
  bool takes_codes() const override { return true; }
  std::string region_fault(const RegionSignature& region, const Target& target) const override;
  RegionPlan region_choices(const RegionSignature& region, const Target& target) const override;
  std::string generated_source(const Program& program) const override;
};

}  // namespace graphrun::cuda
