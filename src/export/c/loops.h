// loops.h: C loops over the elements of several views with equal extents. Adjacent axes are merged if all views allow
// it; axes with one element are dropped.
// Contract: the caller adds the offsets of the views. Counterpart of kernels/dims.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graphrun/view.h"

namespace graphrun::c99 {

struct Axis {
  std::int64_t extent = 1;
  std::vector<std::int64_t> strides;  // one per view, in elements
};

// Merged axes, outermost first, of those in `mask` (bit i: axis i).
std::vector<Axis> merged(const std::vector<View>& views, std::uint32_t mask = ~std::uint32_t{0});

// Removes and returns the innermost axis; returns an axis with one element if there is none.
Axis take_last(std::vector<Axis>& axes, std::size_t views);

// Batch axes of a matrix product: all but the last two, broadcast.
std::vector<Axis> matrices(const View& a, const View& b);

// `for` headers of the axes, and the pointer expression of each operand within them.
struct Loops {
  std::string text;
  std::vector<std::string> places;
};
Loops loops(const std::vector<Axis>& axes, const std::vector<std::string>& bases);

}  // namespace graphrun::c99
