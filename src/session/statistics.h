// statistics.h: figures of the elements of a watched value.
// Contract: in double; allocates nothing. What is not finite is counted in `nonfinite` and nowhere else.
#pragma once

#include <cstddef>
#include <span>

#include "graphrun/session.h"

namespace graphrun {

// Where no element is finite min, max, mean and deviation are NaN.
Statistics statistics(DType dtype, std::span<const std::byte> bytes);

}  // namespace graphrun
