// load_check.cpp: check_loadable(): what a Program has to keep before an executor may run it.
#include "graphrun/load_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/host_memory.h"
#include "graphrun/error.h"
#include "graphrun/op.h"

namespace graphrun {
namespace {

// The kernel gives out more memory than there is and kills whoever uses it; a message is better.
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

// A step as supports() sees it.
class Signature {
 public:
  Signature(const Program& program, const Step& step) : step_(step), output_(program.buffers[step.output].type) {
    for (const BufferId input : step.inputs) {
      inputs_.push_back(program.buffers[input].type);
      views_.push_back(view_of(program.buffers[input]));
      shown_ = shown_ || program.buffers[input].layout == Layout::strided;
    }
  }
  bool reads_views() const { return shown_; }
  StepSignature get() const { return {step_.op, step_.params, inputs_, output_, step_.row_count != kNoBuffer, views_}; }

 private:
  const Step& step_;
  std::vector<TensorType> inputs_;
  std::vector<View> views_;
  bool shown_ = false;
  const TensorType& output_;
};

class LoadCheck {
 public:
  LoadCheck(const Program& program, const Executor& executor)
      : program_(program),
        executor_(executor),
        target_(find_target(program.target.empty() ? executor.default_target() : std::string_view(program.target))) {}

  void run() const {
    for (const Phase& phase : program_.phases) {
      std::vector<bool> over_rows(phase.steps.size(), false);
      for (const Region& region : phase.regions) {
        for (const Stage& stage : region.stages) {
          for (std::uint32_t i = stage.rows; i < stage.last; ++i) over_rows[i] = true;
        }
        region.chains.empty() ? check_region(phase, region) : check_elements(phase, region);
      }
      for (const Step& step : phase.steps) check_views(phase, step);
      for (std::size_t i = 0; i < phase.steps.size(); ++i) {
        if (!over_rows[i]) check_step(phase, phase.steps[i]);
      }
    }
  }

 private:
  [[noreturn]] void refuse(const Phase& phase, const std::string& what) const {
    throw Error(ErrorKind::input, "step.unsupported",
                fmt::format("{} does not run phase '{}': {}", executor_.name(), phase.name, what));
  }

  void check_views(const Phase& phase, const Step& step) const {
    const Signature signature(program_, step);
    if (signature.reads_views() && !executor_.takes_views(signature.get()))
      refuse(phase, fmt::format("'{}' ({}) reads dense operands only", step.name, name_of(step.op)));
  }

  void check_step(const Phase& phase, const Step& step) const {
    const Support support = executor_.supports(Signature(program_, step).get(), target_);
    if (!support.yes) refuse(phase, fmt::format("'{}' ({}): {}", step.name, name_of(step.op), support.reason));
    const std::uint64_t given = step.workspace == kNoBuffer ? 0 : program_.buffers[step.workspace].bytes;
    if (given < support.workspace_bytes) {
      refuse(phase, fmt::format("'{}' ({}) needs a workspace of {} bytes and has {}", step.name, name_of(step.op),
                                support.workspace_bytes, given));
    }
  }

  void check_region(const Phase& phase, const Region& region) const {
    std::vector<Signature> rows, once;
    for (const Stage& stage : region.stages) {
      for (std::uint32_t i = stage.first; i < stage.last; ++i) {
        (i < stage.rows ? once : rows).emplace_back(program_, phase.steps[i]);
      }
    }
    for (std::uint32_t i = region.stages.back().last; i < region.last; ++i) once.emplace_back(program_, phase.steps[i]);
    const std::vector<StepSignature> of_rows = signatures_of(rows), of_once = signatures_of(once);
    std::vector<Signature> products;
    for (const Stage& stage : region.stages)
      for (const FusedSteps& fused : stage.fused) products.emplace_back(program_, phase.steps[fused.product]);
    std::vector<FusedSignature> of_fused;
    for (const Stage& stage : region.stages) {
      for (const FusedSteps& fused : stage.fused)
        of_fused.push_back(signature_of(fused, phase, products[of_fused.size()].get()));
    }
    const bool reduces =
        std::any_of(region.stages.begin(), region.stages.end(), [](const Stage& one) { return !one.combines.empty(); });
    const RegionForm form = reduces ? RegionForm::reductions : RegionForm::rows;
    expect(phase, region, executor_.plan_region({form, of_rows, of_once, phase.capacity, of_fused}, target_));
  }

  void check_elements(const Phase& phase, const Region& region) const {
    std::vector<Signature> steps;
    std::vector<std::int64_t> elements;
    for (const ElementChain& chain : region.chains) {
      for (std::uint32_t i = chain.first; i < chain.last; ++i) steps.emplace_back(program_, phase.steps[i]);
      const Step& last = phase.steps[chain.last - 1];
      elements.push_back(last.op == Op::record ? 1 : program_.buffers[last.output].type.shape.elements());
    }
    const std::vector<StepSignature> signatures = signatures_of(steps);
    RegionSignature signature{RegionForm::elements, signatures, {}, phase.capacity};
    signature.chains = elements;
    expect(phase, region, executor_.plan_region(signature, target_));
  }
  void expect(const Phase& phase, const Region& region, RegionPlan plan) const {
    if (plan.yes && plan.tiling.index() != region.tiling.index())
      plan = RegionPlan::no("it is tiled for another machine");
    if (!plan.yes)
      refuse(phase, fmt::format("the region of steps {} to {}: {}", region.first() + 1, region.last, plan.reason));
  }

  static std::vector<StepSignature> signatures_of(const std::vector<Signature>& steps) {
    std::vector<StepSignature> list;
    for (const Signature& step : steps) list.push_back(step.get());
    return list;
  }

  FusedSignature signature_of(const FusedSteps& fused, const Phase& phase, const StepSignature& product) const {
    FusedSignature signature{product, fused.bias != kNoStep};
    if (fused.epilogue == kNoStep) return signature;
    const Step& epilogue = phase.steps[fused.epilogue];
    const BufferId value = phase.steps[fused.bias != kNoStep ? fused.bias : fused.product].output;
    signature.epilogue = epilogue.op;
    for (std::size_t i = 0; i < epilogue.inputs.size(); ++i) {
      if (epilogue.inputs[i] == value) {
        signature.input = i;
      } else {
        signature.in_place = signature.in_place || meet(epilogue.inputs[i], epilogue.output);
      }
    }
    return signature;
  }
  // In a tile.
  bool meet(BufferId a, BufferId b) const {
    const Buffer& x = program_.buffers[a];
    const Buffer& y = program_.buffers[b];
    return x.bytes > 0 && y.bytes > 0 && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
  }

  const Program& program_;
  const Executor& executor_;
  const Target& target_;
};

}  // namespace

void check_loadable(const Program& program, const Executor& executor) {
  check(program);
  LoadCheck(program, executor).run();
  if (find_target(executor.default_target()).executor == "cpu") refuse_too_much_for_the_host(program);
}

}  // namespace graphrun
