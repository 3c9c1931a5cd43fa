// block_values.h: kernel with block or split tiles while it is written: its row steps, storage of each value, and the
// code of a step for one feature of one sample. Contract: names in generated code: `x5` in a register, `f` loaded in
// advance by a loop, `s.v5[b]` row b of a block, `g5` the region's scratch, `d5` data, `r` the sample, `i` the feature.
// With split tiles, `s.cluster.own[b] + 5` is a block's own row and `all` the cluster's values of row `l` of a turn.
// Not here: the kernel around the steps (block_kernel.cpp, split_kernel.cpp).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "executors/cuda_planner/plan/block_phases.h"
#include "executors/cuda_planner/plan/split_plan.h"
#include "executors/cuda_planner/print/kernel_frame.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

// Context of a step's code: values in registers, and definitions that must precede the step.
struct BlockContext {
  bool in_rows = false;          // operands are rows of a block
  bool fetches_first = false;    // the loop loads its operands before it stores anything
  std::set<int> live;            // values in registers: computed earlier in the loop for the same feature
  std::set<int> made;            // functions of a feature that are already defined
  std::string members, fetched;  // struct members of those loads, and their values
  int fetches = 0;
  std::string text;  // definitions for the next statement

  // Adds a load of `element` to that struct; returns its name.
  std::string fetch(DType dtype, const std::string& element);
  // First function of a loop, which returns that struct.
  std::string fetch_function(std::string_view parameters, std::string_view begin, std::string_view indent) const;
};

// Rows in memory, `stride` elements apart.
struct BlockRows {
  std::string begin;
  std::int64_t stride;
  // Address.
  std::string at(std::string_view row) const { return fmt::format("({} + u64({}) * {})", begin, row, stride); }
};

// Function that is compiled separately and called by the kernel.
struct BlockPart {
  std::size_t definitions;  // number of BlockKernel::definitions that are valid at the call
  std::string body;
  std::set<std::string> uses;  // names in the body
};

// Grid barrier; if it fails, the loop over steps ends.
inline constexpr std::string_view kBlockSync = "    grid.sync();\n    if (grid.failed()) break;\n";

class BlockKernel : public KernelFrame {
 public:
  using KernelFrame::KernelFrame;
  // Plans the row steps. Precondition: `once` has run the steps before the rows.
  void plan_rows();

  const Stage& stage = region.stages.front();
  std::vector<BlockStep> steps;               // row steps; `int k` is an index into them
  std::map<BufferId, BufferId> loads;         // arena sources of rows, by root of the tile
  std::vector<std::vector<BufferId>> stores;  // arena targets of rows, by producing step
  std::optional<SplitPlan> split;             // set for split tiles
  std::set<int> fetched;                      // split tiles: data of own rows in shared memory, `s.d5[turn % 2][b]`
  BlockPlan plan;
  int current_phase = 0;  // code reads values of earlier phases from the arena

  // The code so far.
  std::string text, shared;             // statements; members of shared memory
  bool waits = false;                   // has a grid barrier
  std::vector<BlockPart> parts;         // parts in call order
  std::vector<Definition> definitions;  // variables defined so far, which a part may read
  bool has_parts = false;

  void define(Definition definition);  // adds it to `text` and `definitions`
  void run_once();                     // adds the steps of `once` so far (OnceText::before_rows)
  // Records that the code of the current part reads a variable; returns its name.
  const std::string& use(const std::string& name) { return *uses_.insert(name).first; }
  void begin_part() { uses_.clear(); }
  // Statement that runs `body`, which may use `at`: the call of a new part, or `body` inline. The code of `body` must
  // have been written since begin_part().
  std::string part(const std::string& body, std::string_view at, std::string_view indent);

  void add_selections();                       // before the first phase: the rows of data that a step uses
  std::vector<Definition> scratch_pointers();  // before the first step
  std::string shared_rows() const;             // members of shared memory
  void clear_rows();                           // zeroes stored rows past the end of a partial batch

  const Step& step(std::uint32_t i) const { return phase.steps[i]; }
  std::uint32_t row_index(int k) const { return stage.rows + static_cast<std::uint32_t>(k); }
  const Step& row_step(int k) const { return step(row_index(k)); }
  BufferId output(int k) const { return row_step(k).output; }
  std::string comment(int k) const { return step_comment(row_step(k)); }
  const BlockStep& at(int k) const { return steps[static_cast<std::size_t>(k)]; }
  const TextCall& call(int k) const { return at(k).call; }
  int maker(int k, std::size_t input) const { return at(k).makers[input]; }
  const std::vector<BufferId>& stores_of(int k) const { return stores[static_cast<std::size_t>(k)]; }
  const std::string& table_of(int k) const { return call(k).picked; }  // table of shuffled rows; "" if none
  int count_steps() const { return static_cast<int>(steps.size()); }
  BlockPlace place(int k) const { return plan.value(k).place; }
  bool in_shared(int k) const { return plan.value(k).shared; }
  std::int64_t features(int k) const { return feature_count(call(k).output); }
  std::int64_t terms(int k, std::size_t input = 0) const { return feature_count(call(k).inputs[input].type); }
  std::int64_t rows_at_once() const { return split ? split->own : kBlockRows; }  // per block
  bool is_shuffled(int k) const { return row_step(k).params.as<MinibatchParams>().shuffle; }
  // Offset of the first row of a value in its data set; 0 for other values, and for -1.
  std::int64_t data_offset(int k) const {
    return k >= 0 && place(k) == BlockPlace::data ? call(k).inputs[0].view.offset : 0;
  }
  bool is_data(int k) const { return place(k) == BlockPlace::data || place(k) == BlockPlace::recomputed; }

  // Address of sample r of value k, or of row b of a block if `in_rows`.
  std::string row_of(int k, bool in_rows);
  BlockRows outside(int k, std::size_t input);  // region input
  BlockRows stored(int k);                      // value in the data set or the arena
  // Operand of a product as an object (kernels/cuda/tile/product.h) with all samples, or with a block's own rows.
  std::string factor(int k, std::size_t input, bool in_rows);
  TextCall named(int k, BlockContext& context);  // call of step k with named operands
  // Defines a recomputed value as a function of the feature.
  void define(int k, BlockContext& context);
  // Code of a step in a loop over features, including all stores of its result.
  std::string statement(int k, BlockContext& context);
  std::string let(int k, BlockContext& context, const std::string& value);  // the same for a known value
  std::string keep(int k, bool in_rows);

 private:
  bool is_of_phase(int k) const { return (fetched.contains(k) ? 0 : plan.value(k).phase) == current_phase; }
  void fetch(TextOperand& operand, const TextCall& by, BlockContext& context);
  std::string data_row(int k);  // expression for the row of data that is sample r

  std::set<std::string> uses_;  // names in the code of the current part
};

// Vector width in elements: the largest of 4, 2 and 1 that divides all sizes.
std::int64_t width_of(std::initializer_list<std::int64_t> sizes);

// Phases of a kernel with block tiles, except sums over rows: product parts with the steps that follow, and rows of
// blocks. Split tile: all steps on a block's `rows` own rows, starting at row `first`.
void add_rows(BlockKernel& kernel);

// Last phase of a kernel with block tiles: sums over rows, and the steps that run once, level by level. The block that
// computes an array element's sum over rows runs all steps on that element. Every block computes scalars; their sums
// over rows are computed by the last block alone if only scalars need them.
struct BlockOrder;
void add_sums(BlockKernel& kernel, BlockOrder& order);

}  // namespace graphrun::cuda
