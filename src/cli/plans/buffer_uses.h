// buffer_uses.h: when the bytes of a plan are in use: what `plan` lists and draws.
// Contract: pure functions of the Program. Leaves to others: where bytes lie (Buffer::offset).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "graphrun/program.h"

namespace graphrun::cli {

// A view, or a buffer that reuses another's bytes, takes no room of its own.
bool owns_bytes(const Program& program, std::size_t id);

// The first and last step of the one phase that touches a buffer. State lives on between steps and has none, nor has
// what several phases touch.
struct Use {
  PhaseId phase = 0;
  std::size_t first = 0, last = 0;
};
std::vector<std::optional<Use>> uses(const Program& program);  // by buffer

// The same for bytes: from the first to the last use of a buffer that owns them, and of all that share them. Steps of a
// region that run tile by tile, or side by side, are one: what one of them touches lives as long as all of them.
std::vector<std::optional<Use>> storage_uses(const Program& program);

}  // namespace graphrun::cli
