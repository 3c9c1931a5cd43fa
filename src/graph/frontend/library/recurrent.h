// recurrent.h: rnn, gru and lstm: layers over the time steps of a sequence.
// Contract: the layers unroll: the graph has the nodes of every time step, so their number is limited (kMaxTimeSteps).
// Gates have torch's order and formulas. Out of scope: sequences of unequal length, initial states other than zeros.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/frontend/library/layers.h"

namespace graphrun {

inline constexpr std::int64_t kMaxTimeSteps = 64;

// Rows for layers().
std::vector<Layer> recurrent_layers();

}  // namespace graphrun
