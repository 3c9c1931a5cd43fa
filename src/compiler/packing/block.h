// block.h: shared by all parts of the packer: memory blocks with live ranges, and a counter of work.
// Contract: work is counted in inner-loop steps, so the same problem and budget give the same answer on any machine.
// Only a `stop` function, if the caller passes one, can end the work for another reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace graphrun::plan {

using Bytes = std::uint64_t;
using Index = std::uint32_t;

struct Block {
  Bytes size = 0;  // > 0
  std::uint32_t first = 0, last = 0;
  Index id = 0;         // index in the caller's list
  Bytes alignment = 1;  // required for its offset
};

constexpr Bytes aligned(Bytes offset, Bytes alignment) {
  return alignment == 1 ? offset : (offset + alignment - 1) / alignment * alignment;
}

struct Solution {
  std::vector<Bytes> offsets;  // one per block
  Bytes total = std::numeric_limits<Bytes>::max();
};

// Peak of the live bytes: a lower bound on the total of any packing.
Bytes peak(std::span<const Block> blocks);

// Time cut into the maximal sets of blocks that are live together, in order of time: two blocks are live together if
// their sections overlap. A section begins with the first block that starts after another one has ended.
class Sections {
 public:
  explicit Sections(std::span<const Block> blocks);

  std::size_t count() const { return begins_.size(); }
  std::uint32_t first_of(const Block& block) const { return at(block.first); }
  std::uint32_t last_of(const Block& block) const { return at(block.last); }

 private:
  std::uint32_t at(std::uint32_t time) const;

  std::vector<std::uint32_t> begins_;
};

// Counts down the remaining steps; polls `stop` about a hundred times per second.
class Meter {
 public:
  explicit Meter(std::uint64_t steps, const std::function<bool()>* stop = nullptr) : left_(steps), stop_(stop) {}

  void spend(std::uint64_t steps) {
    left_ -= left_ < steps ? left_ : steps;
    since_asked_ += steps;
  }
  std::uint64_t left() const { return left_; }
  bool ended() {
    if (stop_ != nullptr && *stop_ && since_asked_ >= kAskAfter) {
      since_asked_ = 0;
      if ((*stop_)()) left_ = 0;
    }
    return left_ == 0;
  }

 private:
  static constexpr std::uint64_t kAskAfter = 2'000'000;
  std::uint64_t left_;
  std::uint64_t since_asked_ = 0;
  const std::function<bool()>* stop_;
};

}  // namespace graphrun::plan
