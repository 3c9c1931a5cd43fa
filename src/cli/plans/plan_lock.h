// plan_lock.h: plan snapshots: `plan --lock` writes one, `plan --check` compares a plan with it.
// Contract: the text of the Program without buffer numbers, so that a new value adds only its own lines. Contains no
// time, host or path.
#pragma once

#include <optional>
#include <string>

#include "graphrun/program.h"

namespace graphrun::cli {

std::string plan_lock(const Program& program);

// Lines that differ from the file, prefixed with "- " (removed) and "+ " (added); nothing if the plan matches. Throws
// Error (kind input) if the file is not a plan snapshot.
std::optional<std::string> difference_from_lock(const Program& program, const std::string& path);

}  // namespace graphrun::cli
