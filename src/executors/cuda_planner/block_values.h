// block_values.h: common part of the code generators for block tiles: row steps, storage of each value, and the code of
// a step for one feature of one sample. Contract: names in generated code: `x5` in a register, `f` loaded in advance by
// a loop, `s.v5[b]` row b of a block, `g5` the region's scratch, `d5` data, `r` the sample, `i` the feature. With split
// tiles, `s.cluster.own[b] + 5` is a block's own row and `all` the cluster's values of row `l` of a turn.
// Not here: loops and phases (block_rows.h), sums over rows (block_sums.h).
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

// Context of a step's code: values in registers, and definitions that must precede the step.
struct BlockContext {
  std::set<int> held;            // values in registers: computed earlier in the loop for the same feature
  std::set<int> made;            // functions of a feature that are already defined
  bool in_rows = false;          // operands are rows of a block
  bool fetches_first = false;    // the loop loads its operands before it stores anything
  std::string members, fetched;  // struct members of those loads, and their values
  int fetches = 0;
  std::string text;  // definitions for the next statement

  // Adds a load of `element` to that struct; returns its name.
  std::string fetch(DType dtype, const std::string& element);
};

// Generated part of a kernel.
struct BlockText {
  std::string text, shared;         // statements; members of shared memory
  std::uint64_t parts_bytes = 0;    // shared memory for product parts and sums
  std::uint64_t scratch_bytes = 0;  // scratch of the region after BlockPlan::bytes
  bool waits = false;               // has a grid barrier
};

// Function that is compiled separately and called by the kernel.
struct BlockPart {
  std::size_t definitions;  // number of BlockValues::definitions that are valid at the call
  std::string body;
  std::set<std::string> uses;  // names in the body
};

class BlockValues {
 public:
  explicit BlockValues(KernelFrame& of);

  KernelFrame& frame;
  const Phase& phase = frame.phase;
  const Stage& stage = frame.region.stages.front();
  const StepTiling& tiling = frame.tiling;
  OnceText& once = frame.once;
  std::vector<BlockStep> steps;                 // row steps; `int k` is an index into them
  std::map<BufferId, BufferId> loads;           // arena sources of rows, by root of the tile
  std::map<int, std::vector<BufferId>> stores;  // arena targets of rows, by producing step
  std::optional<SplitPlan> split;               // set for split tiles
  std::set<int> fetched;                        // split tiles: data of own rows in shared memory, `s.d5[turn % 2][b]`
  BlockPlan plan;
  std::vector<BlockPart> parts;         // parts in call order
  std::vector<Definition> definitions;  // variables defined so far, which a part may read
  bool has_parts = false;

  // Adds the definition; returns its text.
  std::string define(Definition definition);
  // Steps that run once so far (OnceText::before_rows), with their definitions.
  std::string once_text();
  // Records that the code of the current part reads a variable; returns its name.
  const std::string& use(const std::string& name) const { return *uses_.insert(name).first; }
  void begin_part() { uses_.clear(); }
  // Statement that runs `body`, which may use `at`: the call of a new part, or `body` inline. The code of `body` must
  // have been written since begin_part().
  std::string part(const std::string& body, std::string_view at, std::string_view indent);

  // Definitions before the first phase: the rows of data that a step uses.
  BlockText selections();
  std::vector<Definition> scratch_pointers() const;  // before the first step
  std::string shared_rows() const;                   // members of shared memory
  std::string clear_rows() const;                    // zeroes stored rows past the end of a partial batch

  void begin_phase(int p);  // later code reads values of earlier phases from the arena

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
  std::int64_t rows_at_once() const { return split ? split->own : kBlockRows; }  // per block

  // Address of sample r of value k, or of row b of a block if `in_rows`.
  std::string row_of(int k, bool in_rows) const;
  std::string outside(BufferId tile) const;                              // address of sample r of a region input
  const std::string& table_of(int k) const { return picked_.at(k); }     // TextCall::picked of shuffled data
  std::string factor_row(int k, std::size_t input, bool in_rows) const;  // address of an operand's row
  // Operand of a product as an object (kernels/cuda/tile/product.h); its row r is sample `begin` + r.
  std::string factor(int k, std::size_t input, bool in_rows, const std::string& begin) const;
  // Call of step k with named operands; `by_feature`: only one feature of each is read.
  TextCall named(int k, BlockContext& context, bool by_feature) const;
  // Defines a recomputed value as a function of the feature.
  void define(int k, BlockContext& context) const;
  // Code of a step in a loop over features, including all stores of its result.
  std::string statement(int k, BlockContext& context) const;
  std::string keep(int k, bool in_rows) const;

 private:
  void find_steps();
  bool is_of_phase(int k) const;
  bool is_shuffled(int k) const;
  void fetch(TextOperand& operand, const TextCall& by, BlockContext& context) const;
  std::string feature(int k, BlockContext& context) const;

  std::map<int, std::string> rows_of_;  // data: expression for the row of sample r
  std::map<int, std::string> picked_;   // data: table with that row; "" if none
  std::map<int, int> phase_of_;
  mutable std::set<std::string> uses_;  // names in the code of the current part
  int now_ = 0;                         // current phase
};

// Vector width in elements: the largest of 4, 2 and 1 that divides all sizes.
std::int64_t width_of(std::initializer_list<std::int64_t> sizes);

}  // namespace graphrun::cuda
