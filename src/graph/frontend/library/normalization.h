// normalization.h: layers that bring the columns of their operand to one scale: layer_norm, rms_norm, batch_norm.
// Contract: PyTorch's equations, columns being the last axis; each is build() of a row of layers().
#pragma once

#include "graph/frontend/library/layers.h"

namespace graphrun {

ir::NodeId layer_norm(const LayerCall& call);
ir::NodeId rms_norm(const LayerCall& call);
ir::NodeId batch_norm(const LayerCall& call);

}  // namespace graphrun
