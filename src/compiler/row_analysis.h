// row_analysis.h: what the batch is to each value: the analysis that regions, and later other machines, go by.
// Contract: follows from the ops' rules (OpDef::rows) and the declared row flags, never from sizes. One kind a node.
// Leaves to others: what to do about it (regions.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"

namespace graphrun {

enum class RowKind : std::uint8_t {
  row,      // dimension 0 is the batch; rows are independent
  shared,   // the same for all rows
  reduced,  // a sum, product or extremum over rows of something with rows
  opaque,   // made from rows in a way that no rule describes
};
std::string_view name_of(RowKind kind);

std::vector<RowKind> row_kinds(const ir::Graph& graph);

}  // namespace graphrun
