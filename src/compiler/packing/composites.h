// composites.h: blocks that are likely to lie together in a tight packing, taken for one: of one size, the one after
// the other in the same bytes; or of one life, on top of each other. Blocks of real programs and those of tight
// instances often fit this way, and a problem with a third of the blocks is searched in no time.
// Contract: any packing of the composites is one of the blocks; the reverse does not hold, so that a search over them
// proves nothing. Deterministic: chance comes from the given generator.
#pragma once

#include <random>
#include <span>
#include <vector>

#include "compiler/packing/block.h"

namespace graphrun::plan {

class Composites {
 public:
  // The bolder, the fewer composites, and the likelier some are wrong.
  enum class Boldness { joins, fitting_stacks, all_stacks };

  Composites(std::span<const Block> blocks, Boldness boldness, std::mt19937& random);

  const std::vector<Block>& blocks() const { return top_; }
  std::uint64_t steps() const { return steps_; }                    // that making them took (Meter)
  std::vector<Bytes> expand(std::span<const Bytes> offsets) const;  // of the given blocks

 private:
  struct Part {
    Block block;
    Index below = 0, above = 0;  // parts; for those that follow in time, the earlier and the later
    bool is_pair = false, is_stack = false;
    bool is_used = false;  // in another part
  };

  bool join_in_time(std::mt19937& random);
  bool stack_to_fit(std::mt19937& random);
  bool stack_any(std::mt19937& random);
  bool join(Index a, Index b);
  bool stack(Index below, Index above);
  void add(Part part);

  std::vector<Part> parts_;  // first the given blocks
  std::size_t given_ = 0;
  std::uint64_t steps_ = 0;
  std::uint32_t salt_ = 0;
  unsigned skipped_ = 0;    // of 16 places
  std::vector<Block> top_;  // ids are those of parts
};

}  // namespace graphrun::plan
