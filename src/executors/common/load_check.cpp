// load_check.cpp: check_loadable(): requirements on a Program before an executor may run it.
#include "executors/common/load_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/host_memory.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

// Reports an error instead of overcommitting: the OS would kill the process when it touches the memory.
void refuse_too_much_for_the_host(const Program& program) {
  std::uint64_t needed = program.arena_bytes;
  for (const Phase& phase : program.phases) {
    for (const Region& region : phase.regions) {
      if (const auto* tiling = std::get_if<HostTiling>(&region.tiling))
        needed = std::max(needed, program.arena_bytes + tiling->tile_bytes);
    }
  }
  const std::uint64_t available = available_host_memory();
  if (needed <= available) return;
  throw OutOfMemory("memory.host",
                    fmt::format("the plan needs {} bytes of host memory, {} are available", needed, available), needed,
                    available);
}

class LoadCheck {
 public:
  LoadCheck(const Program& program, const Executor& executor)
      : program_(program),
        executor_(executor),
        target_(find_target(program.target.empty() ? executor.default_target() : std::string_view(program.target))) {}

  void run() const {
    for (const Phase& phase : program_.phases) {
      std::vector<bool> over_rows(phase.steps.size(), false), in_chain(phase.steps.size(), false);
      for (const Region& region : phase.regions) {
        for (const Stage& stage : region.stages) {
          for (std::uint32_t i = stage.rows; i < stage.last; ++i) over_rows[i] = true;
        }
        for (const ElementChain& chain : region.chains)
          std::fill(in_chain.begin() + chain.first, in_chain.begin() + chain.last, true);
        check_region(phase, region);
      }
      for (std::size_t i = 0; i < phase.steps.size(); ++i) {
        check_views(phase, phase.steps[i], in_chain[i]);
        if (!over_rows[i]) check_step(phase, phase.steps[i]);
      }
    }
  }

 private:
  [[noreturn]] void refuse(const Phase& phase, const std::string& what) const {
    throw Error(ErrorKind::input, "step.unsupported",
                fmt::format("{} does not run phase '{}': {}", executor_.name(), phase.name, what));
  }

  void check_views(const Phase& phase, const Step& step, bool in_chain) const {
    const bool reads_views = std::ranges::any_of(
        step.inputs, [&](BufferId input) { return program_.buffers[input].layout == Layout::strided; });
    if (reads_views && !executor_.takes_views(signature_of(program_, step, in_chain)))
      refuse(phase, fmt::format("'{}' ({}) reads dense operands only", step.name, name_of(step.op)));
    const bool reads_codes = std::ranges::any_of(
        step.inputs, [&](BufferId input) { return program_.buffers[input].layout == Layout::codes; });
    if (reads_codes && !executor_.takes_codes())
      refuse(phase, fmt::format("'{}' ({}) reads no data in a byte per element", step.name, name_of(step.op)));
  }

  void check_step(const Phase& phase, const Step& step) const {
    const Support support = executor_.supports(signature_of(program_, step), target_);
    if (!support.yes) refuse(phase, fmt::format("'{}' ({}): {}", step.name, name_of(step.op), support.reason));
    const std::uint64_t given = step.workspace == kNoBuffer ? 0 : program_.buffers[step.workspace].bytes;
    const std::uint64_t needed = support.workspace_bytes - support.spare_workspace_bytes;
    if (given < needed) {
      refuse(phase, fmt::format("'{}' ({}) needs a workspace of {} bytes and has {}", step.name, name_of(step.op),
                                needed, given));
    }
  }

  void check_region(const Phase& phase, const Region& region) const {
    RegionSignature signature;
    signature.capacity = phase.capacity;
    std::uint32_t at = region.first();
    const auto add = [&](std::vector<StepSignature>& list, std::uint32_t last) {
      for (; at < last; ++at) list.push_back(signature_of(program_, phase.steps[at], !region.chains.empty()));
    };
    for (const Stage& stage : region.stages) {
      add(signature.once, stage.rows);
      add(signature.rows, stage.last);
      signature.stages.resize(signature.rows.size(), static_cast<std::uint32_t>(&stage - region.stages.data()));
      for (const FusedSteps& one : stage.fused) signature.fused.push_back(fused_signature(one, phase));
    }
    for (const ElementChain& chain : region.chains) {
      add(signature.rows, chain.last);
      signature.chains.push_back(elements_of(program_, phase.steps[chain.last - 1]));
    }
    add(signature.once, region.last);
    std::string fault = executor_.region_fault(signature, target_);
    const bool on_host = target_.multiprocessors == 0;
    const Tiling kind = on_host ? Tiling(HostTiling{}) : region.chains.empty() ? Tiling(StepTiling{}) : GpuTiling{};
    if (fault.empty() && kind.index() != region.tiling.index()) fault = "it is tiled for another machine";
    if (!fault.empty())
      refuse(phase, fmt::format("the region of steps {} to {}: {}", region.first() + 1, region.last, fault));
  }

  FusedSignature fused_signature(const FusedSteps& fused, const Phase& phase) const {
    FusedSignature signature{signature_of(program_, phase.steps[fused.product]), fused.bias != kNoStep};
    if (fused.epilogue == kNoStep) return signature;
    const Step& epilogue = phase.steps[fused.epilogue];
    const BufferId value = phase.steps[fused.bias != kNoStep ? fused.bias : fused.product].output;
    signature.epilogue = epilogue.op;
    for (std::size_t i = 0; i < epilogue.inputs.size(); ++i) {
      if (epilogue.inputs[i] == value) {
        signature.input = i;
      } else {
        const Buffer& other = program_.buffers[epilogue.inputs[i]];
        signature.in_place = signature.in_place || overlap(other, program_.buffers[epilogue.output]);
      }
    }
    return signature;
  }

  const Program& program_;
  const Executor& executor_;
  const Target& target_;
};

}  // namespace

StepSignature signature_of(const Program& program, const Step& step, bool in_chain) {
  StepSignature signature{step.op, step.params, {}, program.buffers[step.output].type, step.row_count != kNoBuffer};
  signature.in_chain = in_chain;
  for (const BufferId input : step.inputs) {
    signature.inputs.push_back(program.buffers[input].type);
    signature.views.push_back(view_of(program.buffers[input]));
  }
  return signature;
}

void check_loadable(const Program& program, const Executor& executor) {
  check(program);
  LoadCheck(program, executor).run();
  if (find_target(executor.default_target()).executor == "cpu") refuse_too_much_for_the_host(program);
}

}  // namespace graphrun
