// plan_lock.h: a plan written down, and compared with that later: `plan --lock` and `plan --check`.
// Contract: the text is that of the Program without the numbers of buffers, so that a new value changes no line but its
// own. It holds no time, host or path.
#pragma once

#include <string>

#include "graphrun/program.h"

namespace graphrun::cli {

std::string plan_lock(const Program& program);

// Throws Error: of kind check, with the lines that differ, where the file tells of another plan; of kind input where it
// is no lock file.
void check_lock(const Program& program, const std::string& path);

}  // namespace graphrun::cli
