// composed.h: functions that models may call which are made of other ops: mean, losses.
// Contract: one row of the table and one build function each; shapes, gradients and every executor follow from the
// parts. Leaves to others: ops with a kernel of their own (ops/), calling by name (functions.h).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/ops/op_def.h"

namespace graphrun {

struct Composed {
  std::string_view name, doc;
  std::vector<std::string_view> operands;
  ir::AttrSchema attrs;
  ir::NodeId (*build)(NodeFactory& make, std::span<const ir::NodeId> operands, const ir::Attrs& attrs);
};

const std::vector<Composed>& composed();

}  // namespace graphrun
