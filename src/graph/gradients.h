// gradients.h: the reverse sweep: adds to the graph the nodes that compute d(loss)/d(each wanted node).
// Contract: loss is a float scalar; throws Error (kind input) that names the op when a path runs through one without a
// gradient. A wanted node that the loss does not depend on gets a zero gradient. The result is again plain nodes, so
// gradients of gradients work. Un-broadcasting is done here, once, for all ops.
#pragma once

#include <span>
#include <vector>

#include "graph/ops/op_def.h"

namespace graphrun {

std::vector<ir::NodeId> gradients(NodeFactory& make, ir::NodeId loss, std::span<const ir::NodeId> wanted);
// The same, starting from a given cotangent of `output` instead of one.
std::vector<ir::NodeId> gradients(NodeFactory& make, ir::NodeId output, ir::NodeId cotangent,
                                  std::span<const ir::NodeId> wanted);
// The gradient of a float scalar by one node; kNoNode where none comes to it.
ir::NodeId gradient_or_none(NodeFactory& make, ir::NodeId loss, ir::NodeId wanted);

}  // namespace graphrun
