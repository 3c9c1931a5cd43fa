#include "compiler/layouts.h"

#include "graphrun/target.h"

namespace graphrun::plan {
namespace {

// Whether row regions run in tiles of a host's vectors. On a GPU, each lane has a row.
bool tiles_have_lanes(const CompileOptions& options) {
  return options.target.empty() || find_target(options.target).compute_capability == 0;
}

Layouts laid_out(const ir::Graph& graph, const CompileOptions& options, const PlanRegion& plan, bool lend) {
  Layouts layouts;
  layouts.analysis = analyze(graph);
  layouts.views = find_views(graph, layouts.analysis, options.takes_views);
  layouts.storage = assign_storage(graph, layouts.analysis, layouts.views, lend);
  layouts.data = lay_out_data(graph, layouts.analysis, options.tiles, tiles_have_lanes(options));
  layouts.regions = lay_out_regions(graph, layouts.analysis, layouts.data, plan, options.tiles);
  layouts.in_tile_only = layouts.storage.in_registers;
  for (const RegionLayout& region : layouts.regions)
    for (const StageLayout& stage : region.stages)
      for (const TileValue& value : stage.values) layouts.in_tile_only[value.node] = !value.loaded && !value.stored;
  return layouts;
}

}  // namespace

Layouts lay_out(const ir::Graph& graph, const CompileOptions& options) {
  return laid_out(graph, options, options.plan_region, false);
}

Layouts lay_out(const ir::Graph& graph, const CompileOptions& options, const std::vector<RegionLayout>& before) {
  std::size_t next = 0;
  const PlanRegion as_before = [&](const RegionSignature&) {
    while (!graph.regions[next].chains.empty()) ++next;  // element regions need no plan
    const RegionLayout& region = before[next++];
    return RegionPlan{true, {}, region.tiling, region.choices};
  };
  return laid_out(graph, options, as_before, true);
}

}  // namespace graphrun::plan
