// random_fill.h: fills the output of a random op, for the kernels over whole batches and those over tiles.
// Contract: as RandomDraw (simd/isa.h); the op determines `what` and the parameters. Leaves to others: loops.
#pragma once

#include "graphrun/op.h"
#include "graphrun/params/random.h"
#include "kernels/cpu/simd/isa.h"

namespace graphrun::cpu {

void fill_random(const IsaTable& table, Op op, const RandomParams& params, RandomDraw draw);

}  // namespace graphrun::cpu
