// search.h: exact search: can these blocks lie below a ceiling, and how?
//
// A packing can always be lowered until each block stands on 0 or on a block that lives with it (canonical packings,
// Moffitt 2023), so only such are searched, from below. Time is cut into sections, the largest sets of blocks that live
// together; over each section the *floor* is the height up to which all is decided, and `slack` is what the section may
// still waste: ceiling - floor - what still waits there. A *valley* is a run of sections of equal floor between higher
// ones: until it is filled up to its lower wall, only blocks that live wholly within it can stand there. Hence its
// leftmost section is next covered by a block that begins right there, or wastes some bytes; likewise at the right end.
// The search takes the end with the fewest possibilities, and none at all ends a branch: with no slack that is soon.
//
//  - A failed branch says which placements are to blame, and the search goes back to the last of them at once
//    (conflict-directed backjumping, Prosser 1993), so that a mistake below is not met again and again above.
//  - Ends that failed often are taken first from then on (weights as in Boussemart et al. 2004).
//  - Where no waiting block lives across a moment, the two sides are searched apart.
//  - Of equal blocks one is tried.
//
// A search that begins badly seldom mends. Therefore run() has a budget, and callers restart it with other orders.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "compiler/packing/block.h"

namespace graphrun::plan {

enum class Answer { found, impossible, open };  // open: the budget ended first

// Which valley is filled next: the one with the fewest possibilities, or the lowest, which finds a packing sooner where
// there is slack.
enum class Fill { fewest, lowest };

class Search {
 public:
  explicit Search(std::span<const Block> blocks);

  // Blocks with large keys are tried first. Spends at most `steps` of the meter, by a little.
  Answer run(Bytes ceiling, std::span<const double> keys, Fill fill, std::uint64_t steps, Meter& meter);

  const std::vector<Bytes>& offsets() const { return offsets_; }  // after Answer::found

 private:
  using Section = std::uint32_t;
  struct Span {
    Section first, last;
    Bytes size, alignment;
  };
  struct Valley {
    Section first = 0, last = 0;
    bool at_left = true;  // which end is filled next
    Section end() const { return at_left ? first : last; }
  };
  struct Change {
    Index what;        // a block, or blocks + a section where bytes are wasted
    Bytes old_floor;   // of all sections of the block
    std::size_t tops;  // of saved_tops_ before
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

  // Boundary s lies between sections s-1 and s. A wall there holds whatever lives across it.
  bool is_wall(Section boundary, Bytes level) const;
  Bytes wall_above(Section boundary, Section outside, Bytes level) const;
  bool fits(Index block, const Valley& valley) const;
  const std::vector<Index>& at_end(const Valley& valley) const;

  std::uint64_t* blame(std::size_t depth) { return &blames_[depth * words_]; }
  void accuse(std::uint64_t* blame, Index decision) const;
  void explain(std::uint64_t* blame, const Valley& valley) const;
  void fail_at(const Valley& valley);

  std::vector<Span> blocks_;
  std::size_t words_ = 0;  // of a set of decisions: a bit a block, then one a section
  Bytes ceiling_ = 0;
  Fill fill_ = Fill::fewest;

  // By section, and by boundary.
  std::vector<Bytes> load_, floor_, waiting_, slack_;
  std::vector<Index> top_;       // the decision that made the floor
  std::vector<Index> wastes_;    // how often bytes are wasted
  std::vector<Index> crossing_;  // by boundary: waiting blocks that live across it
  std::vector<std::vector<Index>> starts_, ends_, covers_, crosses_;
  std::vector<double> left_weight_, right_weight_;
  double weight_step_ = 1;

  std::vector<char> is_placed_;
  std::vector<Bytes> offsets_;
  std::vector<Index> rank_, by_rank_;
  std::vector<Change> changes_;
  std::vector<Index> saved_tops_;
  std::vector<Index> candidates_;  // of all depths, one after the other
  std::vector<std::pair<std::uint32_t, Index>> scores_;
  std::vector<std::uint64_t> blames_;  // by depth
  std::uint64_t steps_ = 0, limit_ = 0, calls_ = 0, told_ = 0;
  Meter* meter_ = nullptr;
  bool out_ = false;
};

}  // namespace graphrun::plan
