// buffer_uses.h: live ranges of the buffers of a plan, for `plan`'s lists and drawings.
// Contract: pure functions of the Program. Not handled here: offsets (Buffer::offset).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "graphrun/program.h"

namespace graphrun::cli {

// False for views and for buffers that reuse another buffer's bytes: they occupy no memory of their own.
bool owns_bytes(const Program& program, std::size_t id);

// First and last step that use a buffer, within the only phase that does. State, which is live between steps, and
// buffers used by several phases have none.
struct Use {
  PhaseId phase = 0;
  std::size_t first = 0, last = 0;
};
std::vector<std::optional<Use>> uses(const Program& program);  // indexed by buffer

// Live range of storage: first to last use of the owning buffer and all that share its bytes. Steps of a region that
// run tile by tile or concurrently count as one: a buffer used by any of them is live throughout.
std::vector<std::optional<Use>> storage_uses(const Program& program);

}  // namespace graphrun::cli
