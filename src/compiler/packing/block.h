// block.h: what the parts of the packer share: blocks of memory with a life, and how work is counted.
// Contract: work is counted in steps of inner loops, so that the same problem and budget give the same answer anywhere.
// Only a caller who passes `stop` can end it by anything else.
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
  Index id = 0;         // in the caller's list
  Bytes alignment = 1;  // of its offset
};

constexpr Bytes aligned(Bytes offset, Bytes alignment) {
  return alignment == 1 ? offset : (offset + alignment - 1) / alignment * alignment;
}

struct Solution {
  std::vector<Bytes> offsets;  // one a block
  Bytes total = std::numeric_limits<Bytes>::max();
};

// The most bytes that live at one time: no packing is lower.
Bytes peak(std::span<const Block> blocks);

// Time cut into the largest sets of blocks that live together, in order of time: two blocks live together where their
// sections meet. A section begins with the first block that starts after one has ended.
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

// Counts down the steps that are left; asks `stop` about a hundred times a second.
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
