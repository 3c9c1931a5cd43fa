// support.h: what the CUDA kernels can run, and the scratch they ask of the plan.
// Contract: pure functions of (op, attributes, types, machine numbers); no CUDA header, no device, so a plan for a GPU
// can be made anywhere.
// Leaves to others: the kernels themselves (kernels.cpp has one for every op this says yes to).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/params.h"
#include "graphrun/types.h"
#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

struct Verdict {
  std::string reason;                 // why not; empty: yes
  std::uint64_t workspace_bytes = 0;  // valid during the step only
};

Verdict verdict(std::string_view op, const Params& params, std::span<const TensorType> inputs, const TensorType& output,
                const Machine& machine);

// Every op that some types make verdict() agree to.
std::vector<std::string_view> supported_ops();

}  // namespace graphrun::cuda
