// zero_copy_batch.h: a whole batch in the data set's order is read where it lies, by steps that read it from the arena.
// Contract: bind() once for each phase, when its steps are bound: a minibatch step then moves the operands of its
// readers instead of copying rows, but for a batch that is not whole: its missing rows must be zero. Values and bits
// are those of the copy; at() says where they are, for a host that reads the buffer. Leaves to others: batches in any
// other order and batches that regions load into tiles, which are copied as ever.
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
  ZeroCopyBatch(const ZeroCopyBatch&) = delete;  // steps keep addresses of its windows
  ZeroCopyBatch& operator=(const ZeroCopyBatch&) = delete;
  // Keeps addresses of `steps`, which must stay where they are.
  void bind(const Program& program, const Phase& phase, std::vector<BoundStep>& steps);
  // Where the rows of this buffer are; null: in its own place in the arena.
  const std::byte* at(BufferId id) const;
  // The host is about to write the buffer: its readers are to see that.
  void close(BufferId id);

 private:
  struct Window {
    BufferId buffer;
    KernelFn copy;
    const void* own;  // the buffer's place in the arena
    const void* now;
    std::vector<const void**> readers;
    void move(const void* to);
  };
  static void select(const KernelArgs& args);

  std::deque<Window> windows_;
};

}  // namespace graphrun
