// host_memory.h: host memory that this process can still allocate without being killed.
// Contract: the kernel's estimate (MemAvailable), or the remainder of the control groups' or the address space limit
// (ulimit -v), whichever is smaller; the largest number if none can be read.
#pragma once

#include <cstdint>
#include <string>

namespace graphrun {

std::uint64_t available_host_memory(const std::string& root = "");  // root: prefix of /proc and /sys, for tests

}  // namespace graphrun
