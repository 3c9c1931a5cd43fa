// plan_lock.h: a plan written down, and compared with that later: `plan --lock` and `plan --check`.
// Contract: the text is that of the Program without the numbers of buffers, so that a new value changes no line but its
// own. It holds no time, host or path.
#pragma once

#include <optional>
#include <string>

#include "graphrun/program.h"

namespace graphrun::cli {

std::string plan_lock(const Program& program);

// Nothing where the file tells of this plan; otherwise the lines that differ, "- " before those that are gone and "+ "
// before the new ones. Throws Error (kind input) where it is no lock file.
std::optional<std::string> difference_from_lock(const Program& program, const std::string& path);

}  // namespace graphrun::cli
