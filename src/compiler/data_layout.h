// data_layout.h: which data sets lie in vectors of rows, as tiles want them (Layout::vectors), and who reads them
// there. Contract: a pure function. A data set lies in vectors when nothing but regions reads it, in batches that begin
// at whole vectors. A value of it with rows is read in place when its readers can: products, and all that read one
// feature. Leaves to others: what a region is, places in a tile (region_layout.h), buffers (lower.h).
#pragma once

#include <vector>

#include "compiler/graph_analysis.h"
#include "compiler/tile_choice.h"
#include "graph/ir/graph.h"

namespace graphrun::plan {

struct DataLayout {
  // By node: data sets in vectors, and the views of them: how many rows make a batch. 0: lies in rows.
  std::vector<std::int64_t> block;
  std::vector<bool> in_place;  // by node: values that row steps read where the data lie
};

DataLayout lay_out_data(const ir::Graph& graph, const GraphAnalysis& analysis, const TileChoice& choice,
                        bool in_vectors);

}  // namespace graphrun::plan
