// graph_picture.h: a model's graph as a picture: boxes for what the model file names, each below what it is computed
// from. Contract: a pure function of the outline. Throws Error (kind input) for one that is too large.
// Leaves to others: what is in the outline (graphrun/show.h), places (plot/graph_layout.h), files (show.cpp).
#pragma once

#include "graphrun/show.h"
#include "plot/graph_figure.h"

namespace graphrun::cli {

inline constexpr std::size_t kMaxValues = 1000;

plot::GraphFigure graph_picture(const GraphOutline& outline);

}  // namespace graphrun::cli
