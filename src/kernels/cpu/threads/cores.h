// cores.h: how many threads of this process can run at the same time.
// Contract: the cores of the affinity mask, or fewer where a control group (a container's limit) gives the process less
// time than they have: with more threads than that, all are stopped for the rest of every period.
// Leaves to others: how many threads there are (executors/cpu).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace graphrun::cpu {

int available_cores();  // at least 1

// The limit of a group and the groups around it, rounded up to whole cores; none: no limit. `groups` is what
// /proc/self/cgroup says, `root` where the groups are mounted. Reads cpu.max (version 2) and cpu.cfs_*_us (version 1).
std::optional<int> cores_of_groups(std::string_view groups, const std::string& root);

}  // namespace graphrun::cpu
