// block.h: shared by all parts of the packer: memory blocks with live ranges, and a counter of work.
// Contract: work is counted in inner-loop steps, so the same problem and budget give the same answer on any machine.
// Only a `stop` function, if the caller passes one, can end the work for another reason.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "packing/pack.h"

namespace graphrun::plan {

using Bytes = std::uint64_t;
using Index = std::uint32_t;

struct Block : Interval {  // size > 0
  Index id = 0;            // index in the caller's list
};
inline bool are_equal(const Block& a, const Block& b) {  // except for their ids
  return a.size == b.size && a.first == b.first && a.last == b.last && a.alignment == b.alignment;
}

constexpr Bytes aligned(Bytes offset, Bytes alignment) {
  return alignment == 1 ? offset : (offset + alignment - 1) / alignment * alignment;
}

// Peak of the live bytes: a lower bound on the total of any packing.
Bytes peak(std::span<const Block> blocks);

// Same problem with sections as times, counted from 0: the maximal sets of blocks that are live together, in order of
// time. Two blocks are live together if their sections overlap. A section begins with the first block that starts after
// another one has ended.
std::vector<Block> in_sections(std::span<const Block> blocks);

// Counts down the remaining steps; polls `stop` about a hundred times per second.
class Meter {
 public:
  explicit Meter(std::uint64_t steps, const std::function<bool()>* stop = nullptr) : left_(steps), stop_(stop) {}

  void spend(std::uint64_t steps) {
    left_ -= left_ < steps ? left_ : steps;
    since_polled_ += steps;
  }
  std::uint64_t left() const { return left_; }
  bool ended() {
    if (stop_ != nullptr && *stop_ && since_polled_ >= kPollInterval) {
      since_polled_ = 0;
      if ((*stop_)()) left_ = 0;
    }
    return left_ == 0;
  }

 private:
  static constexpr std::uint64_t kPollInterval = 2'000'000;
  std::uint64_t left_;
  std::uint64_t since_polled_ = 0;
  const std::function<bool()>* stop_;
};

// Places each block in turn in the lowest gap that it fits in. Returns the best packing of several orders, then of
// orders that move blocks above `goal` forward; stops at `goal`. The first order completes with any budget. O(n^2) per
// order at worst.
Packing pack_greedily(std::span<const Block> blocks, Bytes goal, Meter& meter);

}  // namespace graphrun::plan
