// plan_summary.h: metrics of a memory plan: bytes by class, peak and the values live at it, savings by reuse, memory
// outside the arena. `plan` prints them as text, JSON, CSV and HTML.
// Contract: pure functions of the Program, so exact for a machine that is not present. Sizes of single values are
// unpadded. Sums over time are padded to the arena's alignment, as in the lower bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graphrun/program.h"

namespace graphrun::cli {

struct ClassTotal {
  BufferKind kind = BufferKind::data;
  std::uint64_t bytes = 0;
  std::size_t buffers = 0;
};

struct MemoryPeak {
  std::string phase, step;  // "" if only states are live
  std::size_t at = 0;       // index among the phase's steps
  std::uint64_t bytes = 0, state_bytes = 0;
  std::vector<BufferId> live;  // in descending order of size, without states
};

struct PlanSummary {
  std::vector<ClassTotal> classes;        // classes with at least one buffer
  std::vector<BufferId> largest;          // in the arena, in descending order of size
  MemoryPeak peak;                        // the step with the most live bytes
  std::uint64_t bytes_without_reuse = 0;  // arena size if no two values shared bytes
  std::uint64_t poll_bytes = 0;           // mirrored in pinned memory, outside the arena, if there is a device
  std::uint64_t tile_bytes = 0;           // scratch of regions, also outside the arena, for each host thread
};
PlanSummary summary_of(const Program& program);

// Ratio of the arena size to the lower bound; 1.0 is optimal.
double over_lower_bound(const Program& program);

// Live range of a buffer's bytes, in steps counted over all phases: [lower, upper).
struct Taken {
  BufferId buffer = 0;
  std::size_t lower = 0, upper = 0;
};
std::vector<Taken> taken_bytes(const Program& program);  // all buffers that own bytes in the arena

// MiniMalloc's CSV format: id,lower,upper,size,offset.
std::string plan_csv(const Program& program);

}  // namespace graphrun::cli
