// support.h: what the CUDA kernels can run, and the scratch they ask of the plan.
// Contract: pure functions of (op, attributes, types, machine numbers); no CUDA header, no device, so a plan for a GPU
// can be made anywhere.
// Leaves to others: the kernels themselves (launcher.h: find_kernel).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "graphrun/params.h"
#include "graphrun/types.h"
#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

struct Verdict {
  std::string reason;                 // why not; empty: yes
  std::uint64_t workspace_bytes = 0;  // valid during the step only
};

Verdict verdict(Op op, const Params& params, std::span<const TensorType> inputs, const TensorType& output,
                const Machine& machine);

}  // namespace graphrun::cuda
