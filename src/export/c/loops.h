// loops.h: the elements of several views of the same extents as loops of C: neighbouring axes become one where each
// view allows it, axes of one element none.
// Contract: offsets of the views themselves are left to the caller. What kernels/dims.h is to kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graphrun/view.h"

namespace graphrun::c99 {

struct Axis {
  std::int64_t extent = 1;
  std::vector<std::int64_t> strides;  // of each view
};

// Outermost first; of the axes in `mask` (bit i: axis i).
std::vector<Axis> merged(const std::vector<View>& views, std::uint32_t mask = ~std::uint32_t{0});

// Takes the innermost axis away; one of one element where there is none.
Axis take_last(std::vector<Axis>& axes, std::size_t views);

// The matrices of a product: all axes of both but the last two, broadcast.
std::vector<Axis> matrices(const View& a, const View& b);

// "for" for each axis, and where the operands are within.
struct Loops {
  std::string text;
  std::vector<std::string> places;
};
Loops loops(const std::vector<Axis>& axes, const std::vector<std::string>& bases);

}  // namespace graphrun::c99
