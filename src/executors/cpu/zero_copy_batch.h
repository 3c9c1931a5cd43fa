// zero_copy_batch.h: steps that read a full batch in data set order from the arena read the data set in place instead.
// Contract: call bind() once per phase, when its steps are bound. A minibatch step then redirects the operands of its
// readers instead of copying rows, except for a partial batch, whose missing rows must be zero. Results are bitwise
// identical to the copy; at() locates the values for a host that reads the buffer. Not here: batches in any other order
// and batches that regions load into tiles, which are copied.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "executors/cpu/bound_step.h"
#include "graphrun/program.h"

namespace graphrun {

class ZeroCopyBatch {
 public:
  ZeroCopyBatch() = default;
  ZeroCopyBatch(const ZeroCopyBatch&) = delete;  // steps hold addresses of its windows
  ZeroCopyBatch& operator=(const ZeroCopyBatch&) = delete;
  // Keeps addresses of `steps`, which must not move.
  void bind(const Program& program, const Phase& phase, std::vector<BoundStep>& steps);
  // Address of the buffer's rows; null if they are in its own place in the arena.
  const std::byte* at(BufferId id) const;
  // Call before the host writes the buffer, so that its readers see the new contents.
  void close(BufferId id);

 private:
  struct Window {
    BufferId buffer;
    KernelFn copy;
    const void* own;  // address of the buffer in the arena
    const void* now;
    std::vector<const void**> readers;
    void move(const void* to);
  };
  static void select(const KernelArgs& args);

  std::deque<Window> windows_;
};

}  // namespace graphrun
