// passes.h: passes that rewrite a graph, in the order of compile(). Contract: pure; a node that is kept, polled, a
// state or an effect still exists, under its name; the other contracts open the .cpp files. Not here: regions
// (regions.h).
#pragma once

#include <cstdint>
#include <span>

#include "compiler/regions.h"
#include "compiler/rewrite.h"
#include "graphrun/target.h"

namespace graphrun {

// Splits the batches of the phase `train` into shards. Before bind_batch.
Rewritten share_rows(const ir::Graph& graph, std::int64_t shards);

// Takes one capacity per phase.
Rewritten bind_batch(const ir::Graph& graph, std::span<const std::int64_t> capacities);

Rewritten simplify(const ir::Graph& graph);     // merges equal nodes; drops identities and implicit broadcasts
Rewritten remove_dead(const ir::Graph& graph);  // drops nodes that no effect, kept or polled node needs

ir::Graph fuse(ir::Graph graph, const RegionOptions& options);  // row steps of regions
// Other products of at least `least` elements, each with the elementwise steps after it.
Rewritten fuse_products(const ir::Graph& graph, const RegionOptions& options, std::int64_t least);
Rewritten fuse_elements(const ir::Graph& graph, const RegionOptions& options, const ElementLimits& limits);

}  // namespace graphrun
