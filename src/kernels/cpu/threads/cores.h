// cores.h: number of threads of this process that can run at the same time.
// Contract: the cores of the affinity mask, or fewer if a control group (a container's limit) grants the process less
// CPU time: with more threads than that, all are throttled for the rest of every period.
// Leaves to others: the number of threads (executors/cpu).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace graphrun::cpu {

int available_cores();  // at least 1

// CPU limit of a control group and its ancestors, rounded up to whole cores; none: no limit. `groups` is the content of
// /proc/self/cgroup, `root` the mount point. Reads cpu.max (version 2) and cpu.cfs_*_us (version 1).
std::optional<int> cores_of_groups(std::string_view groups, const std::string& root);

}  // namespace graphrun::cpu
