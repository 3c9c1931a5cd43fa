// graph_picture.h: a model's graph as a picture: boxes for the names in the model file, each below its operands.
// Contract: a pure function of the outline. Throws Error (kind input) if it is too large. Not handled here: content of
// the outline (graphrun/show.h), layout (plot/graph_layout.h), files (show.cpp).
#pragma once

#include "graphrun/show.h"
#include "plot/graph_figure.h"

namespace graphrun::cli {

inline constexpr std::size_t kMaxValues = 1000;

plot::GraphFigure graph_picture(const GraphOutline& outline);

}  // namespace graphrun::cli
