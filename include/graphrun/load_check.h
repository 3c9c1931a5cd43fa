// load_check.h: what Executor::load() begins with, so that nothing reaches a kernel that is no step.
// Contract: throws Error for the first rule of program.h that the Program breaks, and for the first step or region that
// the executor does not support, or not with the workspace that it has; an arena that the host has not is OutOfMemory
// where the executor computes on the host. What passes reads and writes within the arena.
#pragma once

#include "graphrun/executor.h"
#include "graphrun/program.h"

namespace graphrun {

GRAPHRUN_API void check_loadable(const Program& program, const Executor& executor);

}  // namespace graphrun
