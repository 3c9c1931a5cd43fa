// wait.h: waits for another block that end: after two seconds a wait gives up, and then all waits of the launch do.
// Contract: `for (Wait wait(fault, kind); !there();) if (!wait.again()) give up`. A wait that gives up leaves its kind
// in the word at `fault`, which the host looks at after the launch (cuda.wait). Leaves to others: what is looked at
// (exchange.h), what a block does after a wait that gave up: nothing that waits for ever.
#pragma once

#include "kernels/cuda/tile/ptx.h"

namespace graphrun::cuda::tile {

// What was waited for; the word at `fault` is 0 while no wait has given up.
enum class WaitFor : unsigned { cluster = 1, grid = 2 };

class Wait {
 public:
  GRAPHRUN_TILE_FN Wait(unsigned* fault, WaitFor what) : fault_(fault), what_(what) {}

  // After a look that found nothing: whether to look again. The clock and the word take longer than a look.
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
