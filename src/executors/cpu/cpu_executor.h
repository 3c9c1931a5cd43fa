// cpu_executor.h: the fast host executor: kernels for the machine's best instruction set.
// Contract: executor.h; bitwise identical for any number of threads (set_threads, environment GRAPHRUN_THREADS, else
// the available cores) and instruction set (environment GRAPHRUN_ISA=plain|avx2|avx512). A Runnable's threads start in
// load() and end with it; between runs they sleep. Not here: the kernels (kernels/cpu).
#pragma once

#include <atomic>

#include "executors/common/host_executor.h"

namespace graphrun {

inline constexpr int kMaxThreads = 1024;

class CpuExecutor final : public HostExecutor {
 public:
  std::string_view name() const override { return "cpu"; }
  HostKernel kernel(const StepSignature& step) const override;
  bool takes_views(const StepSignature& step) const override;
  bool takes_codes() const override { return true; }
  std::string region_fault(const RegionSignature& region, const Target& target) const override;
  RegionPlan region_choices(const RegionSignature& region, const Target& target) const override;
  void set_threads(int threads) override;  // throws Error if not in [0, kMaxThreads]
  std::unique_ptr<Runnable> load(const Program& program) override;
  DeviceList devices() const override;

 private:
  std::atomic<int> threads_{0};
};

}  // namespace graphrun
