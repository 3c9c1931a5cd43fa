// fusion.cpp: regions of a model and their savings, for the run summary and `graphrun plan`.
#include <fmt/format.h>

#include <set>

#include "session/compiling/compiled_model.h"
#include "session/compiling/tilings.h"

namespace graphrun {
namespace {

RegionSummary summary_of(const Program& program, const Phase& phase, const Region& region) {
  RegionSummary summary;
  summary.phase = phase.name;
  summary.steps = region.last - region.first();
  summary.stages = region.stages.size();
  summary.tiling = region.tiling;
  summary.chains = region.chains.size();
  for (const ElementChain& chain : region.chains) {
    for (std::uint32_t i = chain.first; i < chain.last; ++i) {
      const Buffer& output = program.buffers[phase.steps[i].output];
      if (output.kind == BufferKind::tile) summary.bytes_in_tiles += output.type.bytes();
    }
  }
  for (const Stage& stage : region.stages) {
    summary.row_steps += stage.last - stage.rows;
    std::set<BufferId> stored;
    for (const TileMove& move : stage.stores) stored.insert(move.tile);
    for (std::uint32_t i = stage.rows; i < stage.last; ++i) {
      const BufferId output = phase.steps[i].output;
      if (program.buffers[output].kind == BufferKind::tile && stored.count(output) == 0)
        summary.bytes_in_tiles += program.buffers[output].type.bytes();
    }
  }
  return summary;
}

}  // namespace

FusionSummary fusion_of(const CompiledModel& compiled) {
  FusionSummary summary;
  summary.fallbacks = compiled.fallbacks;
  summary.budget = compiled.budget;
  std::size_t over_rows = 0;
  for (const Phase& phase : compiled.program.phases) {
    for (const Region& region : phase.regions) {
      RegionSummary& one = summary.regions.emplace_back(summary_of(compiled.program, phase, region));
      if (!region.chains.empty()) continue;
      for (const RegionChoice& choice : compiled.choices[over_rows++])
        one.choices.emplace_back(tiling_name(choice.tiling), choice.cost);
      if (!one.choices.empty()) one.tiling_name = tiling_name(region.tiling);
    }
  }
  for (const RegionNote& note : compiled.regions.notes)
    summary.notes.push_back(fmt::format("{}: {}: {}", compiled.program.phases[note.phase].name, note.node, note.text));
  summary.notes.insert(summary.notes.end(), compiled.in_f32.begin(), compiled.in_f32.end());
  return summary;
}

}  // namespace graphrun
