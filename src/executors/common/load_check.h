// load_check.h: checks that Executor::load() makes first, so that kernels only receive valid steps.
// Contract: throws Error for the first rule of program.h that the Program breaks, and for the first step or region that
// the executor does not support, or not with the workspace that it has. Throws OutOfMemory if the executor computes on
// the host and the host lacks memory for the arena. A Program that passes reads and writes only within the arena.
#pragma once

#include "graphrun/executor.h"
#include "graphrun/program.h"

namespace graphrun {

StepSignature signature_of(const Program& program, const Step& step, bool in_chain = false);

GRAPHRUN_API void check_loadable(const Program& program, const Executor& executor);

}  // namespace graphrun
