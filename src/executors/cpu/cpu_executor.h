// cpu_executor.h: the fast host executor: f32 kernels for the machine's best instruction set.
// Contract: executor.h; the same bits whatever the instruction set (environment GRAPHRUN_ISA=plain|avx2|avx512).
// Leaves to others: the kernels (kernels/cpu), f64 (executors/ref).
#pragma once

#include "graphrun/executor.h"

namespace graphrun {

class CpuExecutor final : public Executor {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string_view default_target() const override { return "host"; }
  Support supports(const StepSignature& step, const Target& target) const override;
  std::unique_ptr<Runnable> load(const Program& program) override;
};

}  // namespace graphrun
