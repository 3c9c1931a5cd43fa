// host_memory.h: how much memory this process can still get from the host without being killed for it.
// Contract: the kernel's own estimate (MemAvailable), or what is left of a limit of the process's control groups or
// of its addresses (ulimit -v) when that is less; the greatest number there is where neither can be read.
#pragma once

#include <cstdint>
#include <string>

namespace graphrun {

std::uint64_t available_host_memory(const std::string& root = "");  // root: of /proc and /sys, for tests

}  // namespace graphrun
