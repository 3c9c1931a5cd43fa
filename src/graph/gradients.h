// gradients.h: the reverse sweep: adds to the graph the nodes that compute d(loss)/d(each wanted node).
// Contract: loss is a float scalar. Throws Error (kind input) that names the op if a path contains an op without a
// gradient. A wanted node that the loss does not depend on gets a zero gradient. The results are plain nodes, so
// gradients of gradients work. The sweep un-broadcasts for all ops.
#pragma once

#include <span>
#include <vector>

#include "graph/ops/op_def.h"

namespace graphrun {

std::vector<ir::NodeId> gradients(ir::Builder& make, ir::NodeId loss, std::span<const ir::NodeId> wanted);
// Starts from the given cotangent of `output` instead of 1.
std::vector<ir::NodeId> gradients(ir::Builder& make, ir::NodeId output, ir::NodeId cotangent,
                                  std::span<const ir::NodeId> wanted);
// The Jacobian of rows, (rows, elements of all wanted nodes in order): gradients of each row of `output` with respect
// to nodes without rows. Throws Error (kind input) that names an op which combines rows or does not support this.
ir::NodeId gradients_by_row(ir::Builder& make, ir::NodeId output, ir::NodeId cotangent,
                            std::span<const ir::NodeId> wanted);
// Gradient of a float scalar with respect to one node; kNoNode if no gradient reaches it.
ir::NodeId gradient_or_none(ir::Builder& make, ir::NodeId loss, ir::NodeId wanted);

}  // namespace graphrun
