// states.h: all bytes that a program keeps from step to step: two runs that did the same have the same.
#pragma once

#include <cstddef>
#include <vector>

#include "graphrun/executor.h"
#include "graphrun/program.h"

namespace graphrun::test {

inline std::vector<std::byte> states_of(Runnable& runnable, const Program& program) {
  std::vector<std::byte> all;
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (buffer.storage != id || !is_state(buffer.kind)) continue;
    std::vector<std::byte> bytes(buffer.type.bytes());
    runnable.read(id, bytes);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

}  // namespace graphrun::test
