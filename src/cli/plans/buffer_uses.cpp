#include "cli/plans/buffer_uses.h"

#include <algorithm>

namespace graphrun::cli {

bool owns_bytes(const Program& program, std::size_t id) {
  return program.buffers[id].storage == id;
}

std::vector<std::optional<Use>> uses(const Program& program) {
  std::vector<std::optional<Use>> found(program.buffers.size());
  std::vector<bool> shared(program.buffers.size());
  for (PhaseId phase = 0; phase < program.phases.size(); ++phase) {
    const std::vector<Step>& steps = program.phases[phase].steps;
    for (std::size_t at = 0; at < steps.size(); ++at) {
      const auto touch = [&](BufferId id) {
        if (id >= found.size() || is_state(program.buffers[id].kind)) return;
        if (!found[id]) found[id] = Use{phase, at, at};
        if (found[id]->phase != phase) shared[id] = true;
        found[id]->last = at;
      };
      for (const BufferId input : steps[at].inputs) touch(input);
      touch(steps[at].output);
      touch(steps[at].workspace);
      touch(steps[at].row_count);
    }
  }
  for (std::size_t id = 0; id < found.size(); ++id) {
    if (shared[id]) found[id].reset();
  }
  return found;
}

namespace {

class StorageUses {
 public:
  explicit StorageUses(const Program& program)
      : program_(program), found_(program.buffers.size()), always_(program.buffers.size()) {}

  std::vector<std::optional<Use>> run() {
    for (std::size_t id = 0; id < program_.buffers.size(); ++id)
      if (is_state(program_.buffers[id].kind)) always_[root(static_cast<BufferId>(id))] = true;
    for (PhaseId phase = 0; phase < program_.phases.size(); ++phase) add(phase);
    for (std::size_t id = 0; id < found_.size(); ++id)
      if (always_[id]) found_[id].reset();
    return std::move(found_);
  }

 private:
  BufferId root(BufferId id) const { return storage_root(program_, id); }

  void touch(BufferId id, const Use& use) {
    if (id >= program_.buffers.size()) return;
    std::optional<Use>& whole = found_[root(id)];
    if (!whole) whole = use;
    if (whole->phase != use.phase) always_[root(id)] = true;
    whole->first = std::min(whole->first, use.first);
    whole->last = std::max(whole->last, use.last);
  }

  void add(PhaseId id) {
    const Phase& phase = program_.phases[id];
    std::vector<Use> when;
    for (std::size_t at = 0; at < phase.steps.size(); ++at) when.push_back({id, at, at});
    const auto together = [&](std::size_t first, std::size_t last) {
      for (std::size_t at = first; at < last; ++at) when[at] = {id, first, last - 1};
    };
    for (const Region& region : phase.regions) {
      if (!region.chains.empty()) together(region.first(), region.last);
      for (const Stage& stage : region.stages) {
        if (stage.rows == stage.last) continue;
        together(stage.rows, stage.last);
        touch(region.accumulators, when[stage.rows]);
        for (const TileMove& move : stage.loads) touch(move.arena, when[stage.rows]);
        for (const TileMove& move : stage.stores) touch(move.arena, when[stage.rows]);
      }
    }
    for (std::size_t at = 0; at < phase.steps.size(); ++at) {
      const Step& step = phase.steps[at];
      for (const BufferId input : step.inputs) touch(input, when[at]);
      for (const BufferId other : {step.output, step.workspace, step.row_count}) touch(other, when[at]);
    }
  }

  const Program& program_;
  std::vector<std::optional<Use>> found_;
  std::vector<bool> always_;  // state, and buffers used by several phases
};

}  // namespace

std::vector<std::optional<Use>> storage_uses(const Program& program) {
  return StorageUses(program).run();
}

}  // namespace graphrun::cli
