// plan_summary.h: what a memory plan says about memory, as numbers: bytes by class, the peak and what lives there, what
// reuse saves, what lies outside. `plan` prints it as text, JSON, CSV and a page.
// Contract: pure functions of the Program, so exact for a machine that is not there. Sizes of values are their own
// bytes; those of times are padded to places in the arena, as the lower bound has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/program.h"

namespace graphrun::cli {

struct ClassTotal {
  BufferKind kind = BufferKind::data;
  std::uint64_t bytes = 0;
  std::size_t buffers = 0;
};

struct MemoryPeak {
  std::string phase, step;  // "" where nothing but states lives
  std::size_t at = 0;       // of the phase's steps
  std::uint64_t bytes = 0, state_bytes = 0;
  std::vector<BufferId> live;  // by falling bytes, without states
};

struct PlanSummary {
  std::vector<ClassTotal> classes;        // all there are
  std::vector<BufferId> largest;          // in the arena, by falling bytes
  MemoryPeak peak;                        // the step with the most live bytes
  std::uint64_t bytes_without_reuse = 0;  // of an arena in which no two values share bytes
  std::uint64_t poll_bytes = 0;           // mirrored outside the arena, in pinned memory, where there is a device
  std::uint64_t tile_bytes = 0;           // outside the arena too: scratch of regions, for each thread of a host
};
PlanSummary summary_of(const Program& program);

// 1.0 where nothing is lost.
double over_lower_bound(const Program& program);

// When the bytes of a buffer are taken, counted over the steps of all phases one after the other: [lower, upper).
struct Taken {
  BufferId buffer = 0;
  std::size_t lower = 0, upper = 0;
};
std::vector<Taken> taken_bytes(const Program& program);  // of all buffers with bytes of their own in the arena

// MiniMalloc's CSV: id,lower,upper,size,offset.
std::string plan_csv(const Program& program);

}  // namespace graphrun::cli
