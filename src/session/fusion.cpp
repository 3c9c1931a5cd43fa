// fusion.cpp: what regions a model gets and what they save: for the run summary and `graphrun show --rows`.
#include <fmt/format.h>

#include <algorithm>

#include "graphrun/session.h"
#include "session/planned.h"

namespace graphrun {
namespace {

Planned plan_with(const Model& model, const SessionOptions& options, bool fuse) {
  const std::shared_ptr<Executor> executor =
      choose_executor(options.executor, options.custom_executor, options.threads);
  return plan_model(model, {&executor, 1}, {options.target, options.passes, fuse, {}});
}

RegionSummary summary_of(const Program& program, const Phase& phase, const Region& region) {
  RegionSummary summary;
  summary.phase = phase.name;
  summary.steps = region.last - region.first();
  summary.stages = region.stages.size();
  summary.tile_rows = region.tile_rows;
  summary.tile_bytes = region.tile_bytes;
  summary.strands = region.strands;
  for (const Stage& stage : region.stages) {
    summary.row_steps += stage.last - stage.rows;
    for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
      const BufferId output = phase.steps[i].output;
      const bool stored = std::any_of(stage.stores.begin(), stage.stores.end(),
                                      [&](const TileMove& move) { return move.tile == output; });
      if (program.buffers[output].kind == BufferKind::tile && !stored)
        summary.bytes_in_tiles += program.buffers[output].type.bytes();
    }
  }
  return summary;
}

}  // namespace

FusionSummary fusion_summary(const Model& model, const SessionOptions& options) {
  const Planned planned = plan_with(model, options, options.fuse);
  FusionSummary summary;
  summary.arena_bytes = planned.program.arena_bytes;
  summary.arena_bytes_without = plan_with(model, options, false).program.arena_bytes;
  for (const Phase& phase : planned.program.phases) {
    for (const Region& region : phase.regions) summary.regions.push_back(summary_of(planned.program, phase, region));
  }
  for (const RegionNote& note : planned.regions.notes) {
    summary.notes.push_back(
        fmt::format("{}: {}: {}", planned.regions.graph.phases[note.phase].name, note.node, note.text));
  }
  return summary;
}

std::string rows_text(const Model& model, const SessionOptions& options) {
  return to_string(plan_with(model, options, options.fuse).regions);
}

}  // namespace graphrun
