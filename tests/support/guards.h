// guards.h: a Program with guard bytes around every storage, to detect out-of-bounds writes.
// Contract: the new layout does the same work at other addresses; no two storages share bytes. Guards begin at the
// exact byte where a storage ends. The pattern reads as NaN in f32 and f64, so a kernel that reads past its operand is
// detected too. Leaves to others: writing and reading the guards (graph_run.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graphrun/program.h"

namespace graphrun::test {

inline constexpr std::uint64_t kGuardBytes = 1024;

struct Guarded {
  Program program;
  std::vector<BufferId> guards;  // buffers of kind data, views of one buffer that spans the arena
};

Guarded with_guards(const Program& program);

// Bytes [offset, offset + size) of an arena that is filled with the pattern.
std::vector<std::byte> guard_pattern(std::uint64_t offset, std::uint64_t size);

}  // namespace graphrun::test
