#include "steps/emulated_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "emulation/machine.h"
#include "executors/common/load_check.h"
#include "executors/cuda_planner/cost/tile_costs.h"
#include "executors/cuda_planner/cuda_planner.h"
#include "executors/ref/ref_executor.h"
#include "steps/host_kernels.h"

namespace graphrun::test {
namespace {

const cuda::CudaPlanner& planner() {
  class Planner final : public cuda::CudaPlanner {
    std::unique_ptr<Runnable> load(const Program&) override { throw std::logic_error("it only plans"); }
  };
  static const Planner only;
  return only;
}

class EmulatedRunnable final : public HostRunnable {
 public:
  EmulatedRunnable(const Program& program, const EmulatedExecutor& executor)
      : HostRunnable(program, executor.name(), Profiling::off),
        schedule_(executor.options().schedule),
        planted_(executor.options().planted),
        arena_before_(program.arena_bytes) {
    for (const InitialValue& value : program.initial) write(value.buffer, value.bytes);
    for (const Phase& phase : program.phases) phases_.push_back(bind_phase(executor, program, phase));
  }

  // As a device does it: a region that is all of a phase runs n times in one launch.
  void run(PhaseId phase, std::uint64_t n) override {
    std::vector<Part>& parts = phases_.at(phase);
    if (parts.size() == 1 && parts[0].run == nullptr) {
      if (n > 0) launch(parts[0], n);
      return;
    }
    repeat(phase, n, parts.size(), [&](std::size_t i) { run_part(parts[i]); });
  }
  void run_steps(PhaseId phase, std::uint32_t first, std::uint32_t last) override {
    std::vector<Part>& parts = phases_.at(phase);
    check_steps(first, last, parts.empty() ? 0 : parts.back().last);
    for (Part& part : parts) {
      if (part.first >= first && part.last <= last) {
        run_part(part);
      } else if (part.first < last && first < part.last) {
        throw std::logic_error("a region runs whole or not at all");
      }
    }
  }

 private:
  struct Part {
    std::uint32_t first = 0, last = 0;  // steps of the phase
    // One step by itself,
    KernelFn run = nullptr;
    KernelArgs args = {};
    // or a region.
    StepFunction kernel = {};
    StepTiling tiling = {};
    std::byte* scratch = nullptr;
    std::vector<std::byte> arguments = {};  // of StepArguments or SlotArguments
    std::size_t steps_at = 0;               // place in them
    std::vector<Buffer> written = {};       // what the kernel may write, in the order of their places
  };

  std::vector<Part> bind_phase(const EmulatedExecutor& executor, const Program& program, const Phase& phase) {
    std::vector<Part> parts;
    auto region = phase.regions.begin();
    for (std::uint32_t step = 0; step < phase.steps.size(); step = parts.back().last) {
      if (region != phase.regions.end() && step == region->first()) {
        parts.push_back(bind_region(executor, program, phase, *region++));
      } else {
        Part& part = parts.emplace_back(Part{step, step + 1});
        part.run = bind(executor, program, phase, phase.steps[step], part.args).run;
      }
    }
    return parts;
  }

  Part bind_region(const EmulatedExecutor& executor, const Program& program, const Phase& phase, const Region& region) {
    Part part{region.first(), region.last};
    part.tiling = std::get<StepTiling>(region.tiling);
    part.kernel = step_function(executor.text(program, phase, region));
    if (part.kernel.shared_bytes > find_target(executor.default_target()).shared_memory)
      throw std::runtime_error(fmt::format("a block has not {} bytes of shared memory", part.kernel.shared_bytes));
    if (region.accumulators != kNoBuffer) part.scratch = at(program.buffers[region.accumulators]);
    part.written = written_by(program, phase, region);
    std::vector<void*> words;
    const cuda::StepKernel kernel = executor.made(program, phase, region);
    if (kernel.in_one_block) part.tiling.cluster = 1;
    part.tiling.threads = kernel.threads;
    for (const BufferId id : kernel.pointers) words.push_back(at(program.buffers[id]));
    if (words.empty()) words.push_back(nullptr);
    words.push_back(&fault_);
    part.steps_at = words.size() * sizeof(void*);
    words.push_back(nullptr);                                            // how often
    if (kernel.in_slots) words.insert(words.end(), {nullptr, nullptr});  // nothing is polled
    for (const std::uint64_t key : kernel.keys) words.push_back(reinterpret_cast<void*>(key));
    part.arguments.resize(words.size() * sizeof(void*));
    std::memcpy(part.arguments.data(), words.data(), part.arguments.size());
    return part;
  }

  static std::vector<Buffer> written_by(const Program& program, const Phase& phase, const Region& region) {
    std::vector<Buffer> written;
    const auto add = [&](BufferId id) {
      const Buffer& root = program.buffers[storage_root(program, id)];
      if (id != kNoBuffer && root.kind != BufferKind::tile) written.push_back(root);
    };
    for (std::uint32_t i = region.first(); i < region.last; ++i) add(phase.steps[i].output);
    for (const Stage& stage : region.stages)
      for (const TileMove& move : stage.stores) add(move.arena);
    if (region.accumulators != kNoBuffer) add(region.accumulators);
    std::ranges::sort(written, {}, &Buffer::offset);
    return written;
  }

  void check_the_rest(const Part& part) const {
    std::uint64_t at = 0;
    const auto check_until = [&](std::uint64_t end) {
      for (; at < end; ++at)
        if (arena()[at] != arena_before_[at])
          throw std::runtime_error(
              fmt::format("a step kernel wrote to byte {} of the arena, which is not its own", at));
    };
    for (const Buffer& buffer : part.written) {
      check_until(buffer.offset);
      at = std::max(at, buffer.offset + buffer.bytes);
    }
    check_until(arena_before_.size());
  }

  void run_part(Part& part) {
    if (part.run != nullptr) return part.run(part.args);
    launch(part, 1);
  }

  void launch(Part& part, std::uint64_t times) {
    const auto count = static_cast<std::uint32_t>(times);
    std::memcpy(part.arguments.data() + part.steps_at, &count, sizeof(count));
    if (part.tiling.scratch_bytes > 0) std::memset(part.scratch, 0, part.tiling.scratch_bytes);
    std::memcpy(arena_before_.data(), arena(), arena_before_.size());
    emulation::Launch shape{part.tiling.blocks(),
                            part.tiling.cluster,
                            part.tiling.threads,
                            part.kernel.shared_bytes,
                            schedule_++,
                            false,
                            planted_};
    emulation::launch(shape, [&](void*) { part.kernel.run(part.arguments.data()); });
    if (fault_ != 0) throw std::runtime_error("a wait of a step kernel gave up");
    check_the_rest(part);
  }

  std::uint64_t schedule_;
  emulation::Planted planted_;
  std::vector<std::byte> arena_before_;  // the last launch
  unsigned fault_ = 0;
  std::vector<std::vector<Part>> phases_;
};

}  // namespace

HostKernel EmulatedExecutor::kernel(const StepSignature& step) const {
  return RefExecutor().kernel(step);
}

// What the GPU runs, with the workspace that both ask for: so that the program is the GPU's.
Support EmulatedExecutor::supports(const StepSignature& step, const Target& target) const {
  Support support = planner().supports(step, target);
  if (!support.yes) return support;
  support.workspace_bytes = std::max(support.workspace_bytes, kernel(step).workspace_bytes);
  return support;
}
bool EmulatedExecutor::takes_views(const StepSignature& step) const {
  return planner().takes_views(step) && RefExecutor().takes_views(step);
}

std::string EmulatedExecutor::region_fault(const RegionSignature& region, const Target& target) const {
  return planner().region_fault(region, target);
}

RegionPlan EmulatedExecutor::region_choices(const RegionSignature& region, const Target& target) const {
  if (region.over_elements()) return RegionPlan::no("only regions over rows are emulated");
  RegionPlan plan = planner().region_choices(region, target);
  if (!plan.yes || !options_.blocks) return plan;
  StepTiling tiling = std::get<StepTiling>(plan.tiling);
  for (const RegionChoice& choice : plan.choices) {
    const auto& one = std::get<StepTiling>(choice.tiling);
    if (one.tile != options_.tile.value_or(tiling.tile)) continue;
    tiling = one;
    break;
  }
  // Each group of warps has so many threads.
  tiling.threads = options_.blocks->threads * tiling.groups;
  tiling.cluster = options_.blocks->cluster;
  tiling.clusters = options_.blocks->clusters;
  if (tiling.tile == RowTile::block) {  // which have no clusters
    tiling.clusters = tiling.blocks();
    tiling.cluster = 1;
  }
  if (tiling.tile == RowTile::split) tiling.cluster = std::max(tiling.cluster, 2u);  // a block has no room for all
  tiling.scratch_bytes = cuda::scratch_bytes(region, tiling, target.gpu);
  return RegionPlan::with(tiling);
}

cuda::StepKernel EmulatedExecutor::made(const Program& program, const Phase& phase, const Region& region) const {
  const bool in_slots = options_.in_slots && cuda::fits_slots(phase, region);
  const std::uint32_t together = in_slots && cuda::warps_together(phase, region) > 0 ? options_.together : 0;
  return cuda::step_kernel({std::string(kKernelName), program, phase, region, in_slots, together});
}

std::string EmulatedExecutor::text(const Program& program, const Phase& phase, const Region& region) const {
  std::string text = made(program, phase, region).text;
  // Programs of both kinds are compiled together: the inner name is the one that is found.
  const std::string begin = fmt::format("namespace {} {{\n", kKernelName);
  if (program.math == MathMode::fast) text.insert(text.find(begin) + begin.size(), "using Number = fast::Float;\n");
  if (options_.edit) options_.edit(text);
  return text;
}

std::vector<std::string> EmulatedExecutor::texts(const Program& program) const {
  std::vector<std::string> all;
  for (const Phase& phase : program.phases)
    for (const Region& region : phase.regions) all.push_back(text(program, phase, region));
  return all;
}

std::unique_ptr<Runnable> EmulatedExecutor::load(const Program& program) {
  check_loadable(program, *this);
  compile_steps(texts(program));
  return std::make_unique<EmulatedRunnable>(program, *this);
}

}  // namespace graphrun::test
