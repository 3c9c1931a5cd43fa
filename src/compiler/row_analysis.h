// row_analysis.h: how each value depends on the batch; the basis of regions.
// Contract: follows from the ops' rules (OpDef::rows) and the declared row flags, never from sizes. One kind per node.
// Not here: the use of the kinds (regions.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"

namespace graphrun {

enum class RowKind : std::uint8_t {
  row,      // dimension 0 is the batch; rows are independent
  shared,   // the same for all rows
  reduced,  // a sum, product or extremum over the rows of a value
  opaque,   // made from rows in a way that no rule describes
};
std::string_view name_of(RowKind kind);

std::vector<RowKind> row_kinds(const ir::Graph& graph);

}  // namespace graphrun
