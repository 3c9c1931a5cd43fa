// host_executor.h: base class of executors whose arena is host memory; only their own kernels remain to be written.
// Contract: executor.h. A HostExecutor selects the kernel of a step; find_kernel() gives the library's kernel as a
// fallback. Fallbacks are reported: Support::fallback names the executor they come from, FusionSummary::fallbacks lists
// the ops, and the Runnable counts the steps ("fallback_steps").
// Example: tests/support/matmul_executor.cpp. Not here: kernels (kernel.h), fusion (executors/cpu).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/executor.h"
#include "kernels/kernel.h"

namespace graphrun {

struct HostKernel {
  KernelFn run = nullptr;                   // null: none
  std::uint64_t workspace_bytes = 0;        // size of KernelArgs::workspace
  std::string reason = {};                  // reason if there is no kernel; empty: unknown op
  std::string_view fallback = {};           // executor that find_kernel() took it from
  std::uint64_t spare_workspace_bytes = 0;  // as in Support; the kernel checks KernelArgs::workspace_bytes
};

// The library's kernel for a step: from cpu, or from ref if cpu has none (f64). Every op has one.
GRAPHRUN_API HostKernel find_kernel(const StepSignature& step);

class GRAPHRUN_API HostExecutor : public Executor {
 public:
  // Pure function, called before planning and again by load().
  virtual HostKernel kernel(const StepSignature& step) const = 0;

  std::string_view default_target() const override { return "host"; }
  Support supports(const StepSignature& step, const Target& target) const override;
  void set_profiling(Profiling profiling) override { profiling_ = profiling; }
  // Runs steps one after another in the calling thread.
  std::unique_ptr<Runnable> load(const Program& program) override;

 protected:
  Profiling profiling() const { return profiling_; }

 private:
  std::atomic<Profiling> profiling_{Profiling::off};
};

// The arena of a Program in host memory, with transfers and profiling. Subclasses run the phases.
class GRAPHRUN_API HostRunnable : public Runnable {
 public:
  void write(BufferId buffer, std::span<const std::byte> bytes) override;
  void read(BufferId buffer, std::span<std::byte> bytes) override;
  void read_range(BufferId buffer, std::uint64_t first, std::span<std::byte> bytes) override;
  void write_rows(BufferId buffer, std::int64_t first, std::span<const std::byte> bytes) override;
  Profile profile() override { return clock_ ? clock_->profile() : Profile{}; }

 protected:
  HostRunnable(const Program& program, std::string_view executor, Profiling profiling);  // Error: out of memory
  ~HostRunnable() override;

  // For counters(): memory allocated for it, the arena first.
  void count_allocation(std::uint64_t bytes) { ++allocations_, allocated_bytes_ += bytes; }
  std::uint64_t allocations() const { return allocations_; }
  std::uint64_t allocated_bytes() const { return allocated_bytes_; }

  const Buffer& buffer(BufferId id) const { return buffers_.at(id); }
  std::byte* at(const Buffer& buffer) const { return arena_ + buffer.offset; }
  std::byte* arena() const { return arena_; }
  // Address of the buffer. A wrong size is a bug of the caller.
  std::byte* whole(BufferId id, std::size_t bytes) const;

  // The step's kernel, with the addresses of its operands in `args`.
  HostKernel bind(const HostExecutor& executor, const Program& program, const Phase& phase, const Step& step,
                  KernelArgs& args) const;
  void check_steps(std::uint32_t first, std::uint32_t last, std::size_t steps) const;  // checks for run_steps()

  // For a profile: contents of each phase, in phase order.
  void add_to_clock(const Phase& phase, const std::vector<std::string_view>& names);

  // Implements run(): calls run_item(i) for `items` items, n times.
  template <class RunItem>
  void repeat(PhaseId phase, std::uint64_t n, std::size_t items, RunItem run_item) {
    for (std::uint64_t i = 0; i < n; ++i) {
      begin_step(i);
      if (clock_ && clock_->due(phase)) {
        clock_->step(phase, run_item);
      } else {
        for (std::size_t k = 0; k < items; ++k) run_item(k);
      }
    }
  }

 private:
  std::string executor_;
  std::vector<Buffer> buffers_;
  std::byte* arena_ = nullptr;
  std::uint64_t allocations_ = 0, allocated_bytes_ = 0;
  std::unique_ptr<StepClock> clock_;  // null: profiling is off
};

}  // namespace graphrun
