#include "compiler/layouts.h"

#include "graphrun/target.h"

namespace graphrun::plan {
namespace {

// Whether row regions run in tiles of a host's vectors. On a GPU, each lane has a row.
bool tiles_have_lanes(const CompileOptions& options) {
  return options.target.empty() || find_target(options.target).compute_capability == 0;
}

}  // namespace

Layouts lay_out(const ir::Graph& graph, const CompileOptions& options, bool lend) {
  Layouts layouts;
  layouts.analysis = analyze(graph);
  layouts.views = find_views(graph, layouts.analysis, options.takes_views);
  layouts.storage = assign_storage(graph, layouts.analysis, layouts.views, lend);
  layouts.data = lay_out_data(graph, layouts.analysis, options.tiles, tiles_have_lanes(options));
  layouts.regions = lay_out_regions(graph, layouts.analysis, layouts.data, options.plan_region, options.tiles);
  layouts.in_tile_only = layouts.storage.in_registers;
  for (const RegionLayout& region : layouts.regions)
    for (const StageLayout& stage : region.stages)
      for (const TileValue& value : stage.values) layouts.in_tile_only[value.node] = !value.loaded && !value.stored;
  return layouts;
}

}  // namespace graphrun::plan
