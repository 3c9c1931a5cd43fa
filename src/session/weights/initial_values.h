// initial_values.h: initial values of parameters.
// Contract: sampled on the host from the Philox stream (seed, name), so every executor starts from the same bits.
#pragma once

#include <cstdint>
#include <string_view>

#include "graphrun/graph_builder.h"

namespace graphrun {

HostTensor initial_value(const Init& init, std::string_view name, const Shape& shape, std::uint64_t seed);

}  // namespace graphrun
