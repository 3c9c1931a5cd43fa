// grid.h: barrier over all blocks of a kernel.
// Contract: writes of any thread before sync() are visible to all threads after it. All blocks are co-resident, and all
// of their threads call. Nothing is reset: a word counts up from the initial zero of the scratch. After a timeout
// (failed()) no sync() waits. Leaves to others: timeouts (wait.h). All blocks add to one word, which one thread per
// block polls: 1,900 cycles for 132 blocks of an H200. One flag per block, polled by as many threads, took 3,500.
#pragma once

#include "kernels/cuda/tile/shapes.h"
#include "kernels/cuda/tile/wait.h"

namespace graphrun::cuda::tile {

template <unsigned kBlocks>
class Grid {
 public:
  struct Shared {
    unsigned failed;
  };
  static constexpr unsigned kScratchBytes = kGridBytes;

  GRAPHRUN_TILE_FN Grid(Shared& shared, void* scratch, unsigned* fault)
      : shared_(shared), arrived_(static_cast<unsigned*>(scratch)), fault_(fault) {
    if (thread_index() == 0) shared_.failed = 0;
  }

  // Also a barrier of the block.
  GRAPHRUN_TILE_FN void sync() {
    barrier();
    if constexpr (kBlocks > 1) {
      if (shared_.failed != 0) return;
      goal_ += kBlocks;
      if (thread_index() == 0) {
        add_release(arrived_, 1);
        for (Wait wait(fault_, WaitFor::grid); static_cast<int>(load_acquire(arrived_) - goal_) < 0;) {
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
  unsigned* arrived_;
  unsigned* fault_;
  unsigned goal_ = 0;
};

}  // namespace graphrun::cuda::tile
