// arena.h: where the intermediate values of a prediction lie, for a program that has its constants elsewhere.
// Contract: a pure function; values whose lives meet do not overlap, each storage of the Program is one block, and what
// the user's own memory holds is none. Leaves to others: names and types (c_source.cpp).
#pragma once

#include <cstdint>
#include <map>

#include "graphrun/deployment.h"

namespace graphrun::c99 {

struct Arena {
  std::map<BufferId, std::uint64_t> offsets;  // by storage root: bytes
  std::uint64_t bytes = 0, alignment = 4;

  bool holds(const Program& program, BufferId id) const { return offsets.contains(storage_root(program, id)); }
  std::uint64_t offset(const Program& program, BufferId id) const {
    const BufferId root = storage_root(program, id);
    return offsets.at(root) + (program.buffers[id].offset - program.buffers[root].offset);
  }
};

// Whether steps read the input where the user has it.
bool is_in_place(const Deployment& deployment, const DeployedValue& input);

Arena plan_arena(const Deployment& deployment);

}  // namespace graphrun::c99
