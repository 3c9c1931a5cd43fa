// convolution.h: the rows of layers() for convolutions.
#pragma once

#include <vector>

#include "graph/frontend/library/layers.h"

namespace graphrun {

// `activation`: the attribute that they share with dense. `inits`: initial values of W and b.
std::vector<Layer> convolution_layers(const ir::AttrDef& activation, const std::vector<LayerInit>& inits);

}  // namespace graphrun
