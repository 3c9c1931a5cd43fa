// grouping.h: which steps of a phase share a kernel launch, and which of their values need no place in memory.
// Contract: a pure function of the Program. The grouped phase leaves in every state the bits that the steps leave one
// by one; other values are stored only when a step outside of their segment reads them, or none does. A number that
// follows from states alone is computed wherever it is needed, and a step that is needed nowhere else is left out. A
// phase that writes no state is run for its values: there all are stored.
// Leaves to others: the source of shared kernels (kernels/cuda/fused.h), which launches wait for which
// (launch_order.h).
#pragma once

#include <cstdint>
#include <vector>

#include "graphrun/program.h"

namespace graphrun::cuda {

struct Member {
  std::uint32_t step = 0;  // of the phase
  bool stored = true;
  bool scalar = false;    // a single number that other segments compute for themselves as well
  std::vector<int> from;  // for each input: the member of this segment whose value it is; -1: read from memory
};
// Elementwise steps of one index space, in order, before each the scalars that it needs; or one step of any op.
struct Segment {
  std::vector<Member> members;
};
struct Launch {
  std::vector<Segment> segments;     // independent of each other
  std::vector<std::uint32_t> after;  // launches before this one in the list
  bool fused() const { return segments.size() > 1 || segments.front().members.size() > 1; }
};

// `fuse` false: each step by itself.
std::vector<Launch> group_steps(const Program& program, const Phase& phase, bool fuse = true);

}  // namespace graphrun::cuda
