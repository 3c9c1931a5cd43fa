// block_values.h: what the texts of a kernel with tiles of blocks have in common: its row steps, where the value of
// each lies, and how a step is written that computes one feature of one sample. Contract: names in texts: `x5` in a
// register, `f` what a loop asked memory for before, `s.v5[b]` row b of a block, `g5` the region's scratch, `d5` data,
// `r` the sample, `i` the feature. Of split tiles `s.cluster.own[b] + 5` of a block's own row, `all` what the cluster
// has of row `l` of a turn. Leaves to others: loops and phases (block_rows.h), sums over rows (block_sums.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "executors/cuda_planner/block_phases.h"
#include "executors/cuda_planner/kernel_frame.h"
#include "executors/cuda_planner/split_plan.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

// What a step is part of: which values it finds in registers, and what has to precede it.
struct BlockContext {
  std::set<int> held;            // made before in the same loop, for the same feature
  std::set<int> made;            // functions of a feature, defined before
  bool in_rows = false;          // of a block
  bool fetches_first = false;    // the loop asks memory for what it needs before it stores anything:
  std::string members, fetched;  // of a struct, and its values
  int fetches = 0;
  std::string text;  // definitions that the next statement needs

  // A number of that struct, for this element.
  std::string fetch(DType dtype, const std::string& element);
};

// A part of a kernel.
struct BlockText {
  std::string text, shared;         // statements, members of shared memory
  std::uint64_t parts_bytes = 0;    // of shared memory, for parts of products and sums
  std::uint64_t scratch_bytes = 0;  // of the region's, after BlockPlan::bytes
  bool waits = false;               // blocks wait for each other
};

// What is compiled by itself: a function that the kernel calls.
struct BlockPart {
  std::string definitions, body;  // of numbers that hold where it is called; with the kernel's pointers
};

class BlockValues {
 public:
  explicit BlockValues(KernelFrame& of);

  KernelFrame& frame;
  const Phase& phase = frame.phase;
  const Stage& stage = frame.region.stages.front();
  const StepTiling& tiling = frame.tiling;
  OnceText& once = frame.once;
  std::vector<BlockStep> steps;                 // row steps; `int k` is one of them
  std::map<BufferId, BufferId> loads;           // rows from the arena, by the tile's root
  std::map<int, std::vector<BufferId>> stores;  // rows to the arena, by the step that makes them
  std::optional<SplitPlan> split;               // of a split tile
  std::set<int> fetched;                        // there: data of own rows in shared memory, `s.d5[turn % 2][b]`
  BlockPlan plan;
  std::vector<BlockPart> parts;  // in the order of their calls
  std::string definitions;       // of numbers, so far: what a part may read
  bool has_parts = false;

  // The statement that runs `body`, which may name `at`: as a part, or where it stands.
  std::string part(const std::string& body, std::string_view at, std::string_view indent);

  // Definitions before the first phase: the rows of data that a step takes.
  BlockText selections();
  std::string scratch_pointers() const;  // before the first step
  std::string shared_rows() const;       // members of shared memory
  std::string clear_rows() const;        // stored rows past a batch that is not full are zero

  void begin_phase(int p);  // from here on values of earlier phases are in the arena

  const Buffer& buffer(BufferId id) const { return frame.buffer(id); }
  BufferId root(BufferId id) const { return frame.root(id); }
  std::string pointer(BufferId id, std::string_view qualifier) const { return frame.pointer(id, qualifier); }
  const Step& step(std::uint32_t i) const { return phase.steps[i]; }
  const Step& row_step(int k) const { return step(stage.rows + static_cast<std::uint32_t>(k)); }
  const TextCall& call(int k) const { return steps[static_cast<std::size_t>(k)].call; }
  int maker(int k, std::size_t input) const { return steps[static_cast<std::size_t>(k)].makers[input]; }
  BlockPlace place(int k) const { return plan.places[static_cast<std::size_t>(k)]; }
  bool in_shared(int k) const { return plan.shared[static_cast<std::size_t>(k)]; }
  std::int64_t stride(int k) const { return plan.strides[static_cast<std::size_t>(k)]; }
  std::int64_t features(int k) const { return feature_count(call(k).output); }
  std::uint32_t threads() const { return tiling.threads; }
  std::int64_t rows_at_once() const { return split ? split->own : kBlockRows; }  // of a block

  // The first number of sample r, or of row b of a block.
  std::string row_of(int k, bool in_rows) const;
  std::string outside(BufferId tile) const;                              // of rows that the region is given
  const std::string& table_of(int k) const { return picked_.at(k); }     // TextCall::picked, of shuffled data
  std::string factor_row(int k, std::size_t input, bool in_rows) const;  // of an operand
  // The operand of a product as a value (kernels/cuda/tile/product.h): row r is that of sample `begin` + r.
  std::string factor(int k, std::size_t input, bool in_rows, const std::string& begin) const;
  // A step with the names of its operands; `by_feature`: only one feature of them is read.
  TextCall named(int k, BlockContext& context, bool by_feature) const;
  // A remade value, as a function of the feature.
  void define(int k, BlockContext& context) const;
  // A step of a loop over features, and its result to all places that it has.
  std::string statement(int k, BlockContext& context) const;
  std::string keep(int k, bool in_rows) const;

 private:
  void find_steps();
  bool is_of_phase(int k) const;
  void fetch(TextOperand& operand, const TextCall& by, BlockContext& context) const;
  std::string feature(int k, BlockContext& context) const;

  std::map<int, std::string> rows_of_;  // of data: the row of sample r
  std::map<int, std::string> picked_;   // and the table that has it; "" none
  std::map<int, int> phase_of_;
  int now_ = 0;  // the phase
};

// How many numbers side by side are read at once: what all of these are multiples of.
std::int64_t width_of(std::initializer_list<std::int64_t> sizes);

}  // namespace graphrun::cuda
