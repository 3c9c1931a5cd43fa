// region_check.h: the part of check() that validates the regions of a phase.
// Contract: throws Error for the first broken rule. `root` is storage_root() of each buffer. All buffer ids in the
// phase's steps must be valid. Buffers and steps themselves are checked in program_check.cpp.
#pragma once

#include <vector>

#include "graphrun/program.h"

namespace graphrun {

void check_regions(const Phase& phase, const Program& program, const std::vector<BufferId>& root);
// Checks an element region, which has chains instead of stages.
void check_elements(const Region& region, const Phase& phase, const Program& program,
                    const std::vector<BufferId>& root);

}  // namespace graphrun
