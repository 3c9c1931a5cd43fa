// wait.h: bounded waits for another block: after two seconds a wait times out, and then so do all waits of the launch.
// Contract: `for (Wait wait(fault, kind); !there();) if (!wait.again()) give up`. A wait that times out stores its kind
// in the word at `fault`, which the host reads after the launch (cuda.wait). Leaves to others: the condition
// (exchange.h), what a block does after a timeout; it must not wait indefinitely.
#pragma once

#include "kernels/cuda/tile/ptx.h"

namespace graphrun::cuda::tile {

// Kind of wait; the word at `fault` is 0 while no wait has timed out.
enum class WaitFor : unsigned { cluster = 1, grid = 2 };

class Wait {
 public:
  GRAPHRUN_TILE_FN Wait(unsigned* fault, WaitFor what) : fault_(fault), what_(what) {}

  // Called after a failed poll; returns whether to poll again. Most calls skip the slow checks of clock and fault word.
  GRAPHRUN_TILE_FN bool again() {
    look_again();
    return ++looks_ % 256 != 0 || in_time();
  }

 private:
  static constexpr unsigned long long kLimit = 2000000000;  // ns

  GRAPHRUN_TILE_FN bool in_time() {
    if (load_flag(fault_) != 0) return false;
    const unsigned long long now = global_timer();
    if (since_ == 0) since_ = now;
    if (now - since_ < kLimit) return true;
    store_flag(fault_, static_cast<unsigned>(what_));
    return false;
  }

  unsigned* fault_;
  WaitFor what_;
  unsigned looks_ = 0;
  unsigned long long since_ = 0;
};

}  // namespace graphrun::cuda::tile
