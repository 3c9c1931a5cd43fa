// program_mutator.h: changes a Program at random, in any of its fields: what an executor may be given by a stranger.
// Contract: the same engine state and Program give the same mutant. A mutant may be sound, nearly sound or absurd.
#pragma once

#include <random>

#include "graphrun/program.h"

namespace graphrun::test {

void mutate(Program& program, std::mt19937_64& random);

}  // namespace graphrun::test
