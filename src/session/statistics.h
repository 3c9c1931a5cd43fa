// statistics.h: summary statistics of the elements of a watched value.
// Contract: computed in double; allocates nothing. Non-finite elements only count in `nonfinite`.
#pragma once

#include <cstddef>
#include <span>

#include "graphrun/session.h"

namespace graphrun {

// If no element is finite, min, max, mean and standard deviation are NaN.
Statistics statistics(DType dtype, std::span<const std::byte> bytes);

}  // namespace graphrun
