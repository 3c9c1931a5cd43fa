// region_check.h: the rules that regions of a phase keep, for check().
// Contract: throws Error for the first broken one. `root` is the end of each buffer's chain of storages, and
// all buffer ids of the phase's steps exist. Leaves to others: rules of buffers and steps (program_check.cpp).
#pragma once

#include <vector>

#include "graphrun/program.h"

namespace graphrun {

void check_regions(const Phase& phase, const Program& program, const std::vector<BufferId>& root);
// Of a region over elements, which has chains.
void check_elements(const Region& region, const Phase& phase, const Program& program,
                    const std::vector<BufferId>& root);

}  // namespace graphrun
