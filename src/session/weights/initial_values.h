// initial_values.h: initial values of parameters.
// Contract: sampled on the host from the Philox stream (seed, name), so every executor starts from the same bits.
// Samples are f32 numbers for either type, so that fp32 and fp64 start from the same point.
#pragma once

#include <cstdint>
#include <string_view>

#include "graphrun/graph_builder.h"

namespace graphrun {

// The parameter's `type` is f32 or f64.
HostTensor initial_value(const Init& init, std::string_view name, const TensorType& type, std::uint64_t seed);

}  // namespace graphrun
