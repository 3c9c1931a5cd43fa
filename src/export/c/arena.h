// arena.h: memory plan for the intermediate values of a prediction; constants are stored outside the arena.
// Contract: a pure function. Values with overlapping live ranges never overlap in memory, each storage of the Program
// is one block, and buffers in the user's memory get none. Not handled here: names and types (c_source.cpp).
#pragma once

#include <cstdint>
#include <map>

#include "graphrun/deployment.h"

namespace graphrun::c99 {

struct Arena {
  std::map<BufferId, std::uint64_t> offsets;  // in bytes, by storage root
  std::uint64_t bytes = 0, alignment = 4;

  bool holds(const Program& program, BufferId id) const { return offsets.contains(storage_root(program, id)); }
  std::uint64_t offset(const Program& program, BufferId id) const {
    const BufferId root = storage_root(program, id);
    return offsets.at(root) + (program.buffers[id].offset - program.buffers[root].offset);
  }
};

// Whether steps read the input directly from the user's memory.
bool is_in_place(const Deployment& deployment, const DeployedValue& input);

Arena plan_arena(const Deployment& deployment);

}  // namespace graphrun::c99
