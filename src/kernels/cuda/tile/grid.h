// grid.h: all blocks of a kernel wait for each other.
// Contract: what any thread wrote before sync() is seen by all threads after it. All blocks run at the same time, all of
// their threads call. Nothing is reset: flags count, from the zeros that the scratch begins with. After a wait that gave
// up (failed()) no sync() waits. Leaves to others: the clock (wait.h).
#pragma once

#include "kernels/cuda/tile/wait.h"

namespace graphrun::cuda::tile {

template <int kThreads, int kBlocks>
class Grid {
 public:
  struct Shared {
    unsigned failed;
  };
  static constexpr unsigned kScratchBytes = (kBlocks * 4 + 127) / 128 * 128;

  GRAPHRUN_TILE_FN Grid(Shared& shared, void* scratch, unsigned* fault)
      : shared_(shared), flags_(static_cast<unsigned*>(scratch)), fault_(fault) {
    if (thread_index() == 0) shared_.failed = 0;
  }

  // Has barriers, of the block too.
  GRAPHRUN_TILE_FN void sync() {
    ++count_;
    barrier();
    if constexpr (kBlocks > 1) {
      if (shared_.failed != 0) return;
      if (thread_index() == 0) store_release(flags_ + block_index(), count_);
      for (unsigned block = thread_index(); block < kBlocks; block += kThreads) {
        if (block == block_index()) continue;
        for (Wait wait(fault_, WaitFor::grid); static_cast<int>(load_acquire(flags_ + block) - count_) < 0;) {
          if (!wait.again()) {
            shared_.failed = 1;
            break;
          }
        }
      }
      barrier();
    }
  }
  GRAPHRUN_TILE_FN bool failed() const { return shared_.failed != 0; }

 private:
  Shared& shared_;
  unsigned* flags_;
  unsigned* fault_;
  unsigned count_ = 0;
};

}  // namespace graphrun::cuda::tile
