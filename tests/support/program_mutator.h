// program_mutator.h: random changes to any field of a Program, as an executor may receive from an untrusted source.
// Contract: the same engine state and Program give the same mutant. A mutant may be valid, nearly valid or absurd.
#pragma once

#include <random>

#include "graphrun/program.h"

namespace graphrun::test {

void mutate(Program& program, std::mt19937_64& random);

}  // namespace graphrun::test
