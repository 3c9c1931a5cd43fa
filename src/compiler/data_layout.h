// data_layout.h: which data sets are stored in vectors of rows, as tiles need them (Layout::vectors), and which values
// are read there in place. Contract: a pure function. A data set is stored in vectors if only regions read it, in
// batches that begin at whole vectors. A value of it with rows is read in place if its readers can: products, and all
// readers of a single feature. Not here: regions, places in a tile (region_layout.h), buffers (lower.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/graph_analysis.h"
#include "graph/ir/graph.h"
#include "graphrun/target.h"

namespace graphrun::plan {

// Overrides for tests; unset fields leave the usual choice. Results may differ in rounding only.
struct TileChoice {
  std::int64_t rows = 0;                       // 0: from shapes and target
  std::int32_t partitions = 0;                 // 0: from shapes and target
  std::optional<ElementLimits> elements = {};  // unset: from the target
};

struct DataLayout {
  // Rows per batch, by node, for data sets in vectors and their views. 0: stored in rows.
  std::vector<std::int64_t> block;
  std::vector<bool> in_place;        // per node: values that row steps read directly from the data set
  std::vector<double> divisor = {};  // per node, for data sets in codes (choose_codes() of arena.h); otherwise 0
};

DataLayout lay_out_data(const ir::Graph& graph, const GraphAnalysis& analysis, const TileChoice& choice,
                        bool in_vectors);

}  // namespace graphrun::plan
