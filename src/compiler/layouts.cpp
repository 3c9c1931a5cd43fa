#include "compiler/layouts.h"

#include "graphrun/target.h"

namespace graphrun::plan {
namespace {

// Whether row regions run in tiles of a host's vectors. On a GPU, each lane has a row.
bool tiles_have_lanes(const CompileOptions& options) {
  return options.target.empty() || find_target(options.target).compute_capability == 0;
}

void mark_tiles(const ir::Graph& graph, Layouts& layouts) {
  layouts.in_rows.assign(graph.size(), false);
  layouts.in_tile_only = layouts.storage.in_registers;
  for (std::size_t r = 0; r < layouts.regions.size(); ++r) {
    for (std::size_t s = 0; s < layouts.regions[r].stages.size(); ++s) {
      const ir::RegionStage& stage = graph.regions[r].stages[s];
      for (ir::NodeId id = stage.rows; id < stage.last; ++id) layouts.in_rows[id] = true;
      for (const TileValue& value : layouts.regions[r].stages[s].values)
        layouts.in_tile_only[value.node] = !value.loaded && !value.stored;
    }
  }
}

Layouts laid_out(const ir::Graph& graph, const CompileOptions& options, const PlanRegion& plan, bool lend) {
  Layouts layouts;
  layouts.analysis = analyze(graph);
  layouts.views = find_views(graph, layouts.analysis, options.takes_views);
  layouts.storage = assign_storage(graph, layouts.analysis, layouts.views, lend);
  layouts.data = lay_out_data(graph, layouts.analysis, options.tiles, tiles_have_lanes(options));
  layouts.regions = lay_out_regions(graph, layouts.analysis, layouts.data, plan, options.tiles);
  mark_tiles(graph, layouts);
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
