// composites.h: merges blocks that are likely to be adjacent in a tight packing: blocks of one size that use the same
// bytes one after the other, or blocks of one live range on top of each other. Blocks of real programs and of tight
// instances often fit this way, and a search is very fast with a third of the blocks.
// Contract: any packing of the composites is a packing of the blocks, but not vice versa, so a search over them proves
// nothing. Deterministic: randomness comes from the given generator.
#pragma once

#include <map>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "packing/block.h"

namespace graphrun::plan {

class Composites {
 public:
  // A bolder choice means fewer composites, and a higher chance that some do not fit.
  enum class Boldness { joins, fitting_stacks, all_stacks };

  // The times of the blocks are sections, so that a block ends exactly where its successor begins.
  Composites(std::span<const Block> blocks, Boldness boldness, std::mt19937& random);

  const std::vector<Block>& blocks() const { return top_; }
  std::uint64_t steps() const { return steps_; }                    // taken by the constructor (Meter)
  std::vector<Bytes> expand(std::span<const Bytes> offsets) const;  // for the given blocks

 private:
  struct Part {
    Block block;
    Index below = 0, above = 0;  // parts; if joined in time: the earlier and the later one
    bool is_stack = false;
    bool is_used = false;  // in another part
  };

  using ByLiveRange = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Index>>;

  bool join_in_time(std::mt19937& random);
  bool stack_to_fit(std::mt19937& random);
  bool stack_any(std::mt19937& random);
  bool combine(Index a, Index b, bool is_stack);
  ByLiveRange by_live_range() const;
  void add(Part part);

  std::vector<Part> parts_;  // the given blocks come first
  std::size_t given_ = 0;
  std::uint64_t steps_ = 0;
  std::uint32_t salt_ = 0;
  unsigned skipped_ = 0;    // out of 16
  std::vector<Block> top_;  // ids are indices into parts_
};

}  // namespace graphrun::plan
