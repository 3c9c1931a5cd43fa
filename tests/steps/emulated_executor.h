// emulated_executor.h: the plans of the CUDA executor, without its device: regions over rows are step kernels, compiled
// for this host and run by the emulator (emulation/machine.h), and all other steps are the reference's.
// Contract: executors/common/host_executor.h; one thread. Rejects regions over elements, which have kernels of their
// own. Throws emulation::Failure if threads of a kernel wait for each other forever, std::runtime_error if a kernel
// does not compile or a wait gives up. Not here: what the kernels compute (executors/cuda_planner).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulation/machine.h"
#include "executors/common/host_executor.h"
#include "executors/cuda_planner/print/step_kernel.h"

namespace graphrun::test {

// How many threads run a region, instead of what the planner chooses: a device has more than are needed to be wrong.
struct Blocks {
  std::uint32_t threads = 32, cluster = 1, clusters = 1;
};

struct EmulationOptions {
  std::optional<Blocks> blocks = Blocks{};        // none: as planned
  std::optional<RowTile> tile{};                  // where it can have the region; none: as planned
  std::uint64_t schedule = 0;                     // of the threads: emulation::Launch::seed
  std::function<void(std::string& text)> edit{};  // of a kernel's text, before it is compiled
  emulation::Planted planted{};                   // a mistake of the machine
  bool in_slots = false;                          // kernels run in slots where they fit, one network per launch
  std::uint32_t together = 0;                     // warps of a block that computes a cluster; 0: the cluster
};

class EmulatedExecutor final : public HostExecutor {
 public:
  explicit EmulatedExecutor(EmulationOptions options = {}) : options_(std::move(options)) {}

  std::string_view name() const override { return "emulated"; }
  std::string_view default_target() const override { return "h200"; }
  HostKernel kernel(const StepSignature& step) const override;
  Support supports(const StepSignature& step, const Target& target) const override;
  bool takes_views(const StepSignature& step) const override;
  std::string region_fault(const RegionSignature& region, const Target& target) const override;
  RegionPlan region_choices(const RegionSignature& region, const Target& target) const override;
  std::unique_ptr<Runnable> load(const Program& program) override;

  // A region's kernel.
  cuda::StepKernel made(const Program& program, const Phase& phase, const Region& region) const;
  // Of a region's kernel, and of all that a program has: to be compiled together with those of other programs.
  std::string text(const Program& program, const Phase& phase, const Region& region) const;
  std::vector<std::string> texts(const Program& program) const;
  const EmulationOptions& options() const { return options_; }

 private:
  EmulationOptions options_;
};

}  // namespace graphrun::test
