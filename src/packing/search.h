// search.h: exact search: do these blocks fit below a ceiling, and how?
//
// Any packing can be lowered until each block rests on 0 or on a block that is live with it (canonical packings,
// Moffitt 2023), so only these are searched, bottom up. Time is cut into sections, the maximal sets of blocks that are
// live together. The *floor* of a section is the height up to which all is decided; `slack` is the bytes that it may
// still waste: ceiling - floor - bytes waiting there. A *valley* is a run of sections of equal floor between higher
// ones. Until it is filled up to its lower wall, only blocks that are live wholly within it can rest on its floor.
// Hence its leftmost section is next covered by a block that begins there, or wastes some bytes; likewise at the right
// end. The search takes the end with the fewest candidates. An end without any fails the branch.
//
//  - A failed branch reports the placements to blame, and the search returns to the last of them at once
//    (conflict-directed backjumping, Prosser 1993), so that one bad placement does not cause many failures above it.
//  - Ends that failed often are taken first from then on (weights as in Boussemart et al. 2004).
//  - If no waiting block is live across a moment, the two sides are searched separately.
//  - Among equal blocks, only one is tried.
//
// A search that begins badly seldom recovers. So run() has a budget, and callers restart it with other orders.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "packing/block.h"

namespace graphrun::plan {

enum class Answer { found, impossible, open };  // open: the budget was spent first

// Valley to fill next: the one with the fewest candidates, or the lowest, which finds a packing sooner if there is
// slack.
enum class Fill { fewest, lowest };

class Search {
 public:
  explicit Search(std::span<const Block> blocks);

  // Tries blocks with large keys first. Spends at most `steps` of the meter, plus a small overrun.
  Answer run(Bytes ceiling, std::span<const double> keys, Fill fill, std::uint64_t steps, Meter& meter);

  const std::vector<Bytes>& offsets() const { return offsets_; }  // after Answer::found

 private:
  using Section = std::uint32_t;
  struct Valley {
    Section first = 0, last = 0;
    bool at_left = true;  // end that is filled next
    Section end() const { return at_left ? first : last; }
  };
  struct Change {
    Index what;        // block, or number of blocks + section where bytes are wasted
    Bytes old_floor;   // same for all sections of the block
    std::size_t tops;  // size of saved_tops_ before the change
  };

  bool solve(Section first, Section last, std::size_t depth);
  bool solve_parts(Section first, Section last, std::size_t depth);
  bool try_blocks(Section first, Section last, std::size_t depth, const Valley& valley, bool& settled);
  bool try_waste(Section first, Section last, std::size_t depth, const Valley& valley);
  bool find_valley(Section first, Section last, Valley& best, std::size_t depth);
  std::size_t candidates(const Valley& valley) const;
  void order_candidates(const Valley& valley, std::size_t from);
  Bytes waste_up_to(const Valley& valley);
  void explain_waste(std::uint64_t* blame, const Valley& valley, Bytes floor);
  bool place(Index block, Bytes floor);
  bool waste(Section section, Bytes floor);
  void take_back(std::size_t changes);

  // Boundary s is between sections s-1 and s. A wall there stops every block that is live across it.
  bool is_wall(Section boundary, Bytes level) const;
  Bytes wall_above(Section boundary, Section outside, Bytes level) const;
  bool fits(Index block, const Valley& valley) const;
  const std::vector<Index>& at_end(const Valley& valley) const;

  std::uint64_t* blame(std::size_t depth) { return &blames_[depth * words_]; }
  bool take_blame(std::size_t depth, Index decision, bool is_repeated);
  void accuse(std::uint64_t* blame, Index decision) const;
  void explain(std::uint64_t* blame, const Valley& valley) const;
  void fail_at(const Valley& valley);

  std::vector<Block> blocks_;  // with sections as times
  std::size_t words_ = 0;      // words of a set of decisions: one bit per block, then one per section
  Bytes ceiling_ = 0;
  Fill fill_ = Fill::fewest;

  // Indexed by section; crossing_ and crosses_ by boundary.
  std::vector<Bytes> load_, floor_, waiting_, slack_;
  std::vector<Index> top_;       // decision that set the floor
  std::vector<Index> wastes_;    // number of wastes in effect
  std::vector<Index> crossing_;  // waiting blocks that are live across the boundary
  std::vector<std::vector<Index>> starts_, ends_, covers_, crosses_;
  std::vector<double> left_weight_, right_weight_;
  double weight_step_ = 1;

  std::vector<char> is_placed_;
  std::vector<Bytes> offsets_;
  std::vector<Index> rank_, by_rank_;
  std::vector<Change> changes_;
  std::vector<Index> saved_tops_;
  std::vector<Index> candidates_;  // stack with those of all depths
  std::vector<std::pair<std::uint32_t, Index>> scores_;
  std::vector<std::uint64_t> blames_;  // per depth
  std::uint64_t steps_ = 0, limit_ = 0, calls_ = 0, reported_ = 0;
  Meter* meter_ = nullptr;
  bool out_ = false;
};

}  // namespace graphrun::plan
