// once_text.h: code of steps that run once, on values shared by all rows. Each block runs them by itself: scalars in
// every thread, arrays with a thread per element.
// Contract: steps of one loop read and write only the same element; a barrier precedes any other read of a value that
// another thread wrote. Names are those of Places. Not here: expressions (row_text.h), the kernel (step_kernel.h).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executors/cuda_planner/print/row_text.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

// Storage of values shared by all rows in the kernel of a region, by storage root: a scalar in a variable of each
// thread, an array in shared memory.
class Places {
 public:
  struct Array {
    BufferId root;
    std::string name;
    DType dtype;
    std::int64_t capacity;  // in elements
  };
  Places(const Program& program, const Phase& phase, const Region& region);

  // Whether an input is accessed directly in the arena: a record ring, or data from which batches are taken.
  bool stays_in_arena(const Step& step, std::size_t input) const;
  // Whether an input is a value shared by all rows, and not only written.
  bool is_read(const Step& step, std::size_t input) const;
  bool is_number(BufferId root) const { return program_.buffers[root].type.shape.elements() == 1; }
  std::string name(BufferId root) const { return fmt::format("{}{}", is_number(root) ? "n" : "v", root); }
  const std::vector<Array>& arrays() const { return arrays_; }
  const std::string& passed(BufferId root) const { return passed_.at(root); }

  // Splits an array into slices of `elements` per block. A slice is in one block, or in all blocks of one cluster rank.
  void slice(BufferId root, std::int64_t elements, std::int64_t capacity);
  bool is_sliced(BufferId root) const { return slices_.contains(root); }
  // Marks a sliced array that only the loop computing it reads. It is not in shared memory; the step in which `leaves`
  // is true writes its elements to the arena at `pointer`.
  void pass(BufferId root, std::string pointer) { passed_[root] = std::move(pointer); }
  bool is_passed(BufferId root) const { return passed_.contains(root); }
  std::int64_t elements(BufferId of) const;  // per block
  std::int64_t capacity(BufferId root) const { return std::ranges::find(arrays_, root, &Array::root)->capacity; }

 private:
  const Program& program_;
  std::map<BufferId, std::int64_t> slices_;
  std::map<BufferId, std::string> passed_;
  std::set<BufferId> written_;  // roots that steps of the region write
  std::vector<Array> arrays_;
};

// Line that defines a variable, and the names that it reads.
struct Definition {
  std::string name, text;
  std::set<std::string> uses;
};

class KernelFrame;

class OnceText {
 public:
  OnceText(KernelFrame& frame, std::string_view arrays);  // prefix of the names of arrays

  void run(std::uint32_t first, std::uint32_t last);  // steps [first, last) of the phase
  // Element i of a reduced value is `total(offset + i)` from here on, until the next barrier.
  void combined(BufferId value, const std::string& total, std::int64_t offset);
  void rows_read(const Step& step);  // registers a row step's reads of shared values
  void found(BufferId number, std::string name) { numbers_[root(number)] = std::move(name); }  // value from here on
  void after_barrier() { since_barrier_.clear(); }

  std::vector<Definition> definitions;  // scalars computed so far

  // Code so far, up to a point where all threads see the writes.
  std::string before_rows();
  std::string end_of_step();

  TextCall call(const Step& step) const;                                       // names the operands without rows
  std::string value(BufferId number) const;                                    // its current expression
  std::string array(BufferId of) const { return arrays_ + places_.name(of); }  // address of the first element
  bool folds() const { return folds_; }  // some array is folded by all threads together
  const std::vector<BufferId>& read_first() const { return read_first_; }      // roots read from the arena at the start
  const std::vector<BufferId>& written_back() const { return written_back_; }  // roots valid at the end
  bool is_read_first(BufferId root) const { return std::ranges::find(read_first_, root) != read_first_.end(); }
  const std::set<BufferId>& read_arrays() const { return read_arrays_; }  // roots read outside the loop computing them

 private:
  struct Access {
    BufferId root;
    bool writes;
    std::optional<std::int64_t> offset;  // element i + offset of the root for element i of the step; none: any elements
  };
  struct Loop {
    std::int64_t elements = 0;
    std::map<std::uint32_t, TextCall> steps;  // with operand names as of that step
    std::vector<Access> accesses;
    std::map<BufferId, std::string> totals = {};  // element i of reduced values that start the loop
  };
  static bool conflict(const Access& a, const Access& b) { return a.root == b.root && (a.writes || b.writes); }
  static bool meet(const std::vector<Access>& some, const std::vector<Access>& others);

  const Buffer& buffer(BufferId id) const { return program_.buffers[id]; }
  BufferId root(BufferId id) const { return storage_root(program_, id); }
  View view(BufferId id) const;
  std::vector<Access> accesses(const Step& step, bool with_output = true) const;
  std::string definition(const Step& step, std::string_view name, std::string_view code) const;
  void number(std::uint32_t index);
  void loop(std::uint32_t index);
  void flush();
  void barrier();
  void emit(const Loop& loop);
  void find_order();
  void find_exact();
  std::optional<std::string> literal(BufferId of) const;

  KernelFrame& frame_;
  const Program& program_;
  const Phase& phase_;
  const Region& region_;
  const Places& places_;
  std::uint32_t threads_;
  std::string arrays_;
  std::set<BufferId> exact_;  // outputs of steps that compute in float
  std::string text_;
  std::vector<Loop> open_;             // not emitted yet
  std::vector<Access> since_barrier_;  // accesses of emitted code since the last barrier
  std::map<BufferId, std::string> numbers_;
  std::set<BufferId> read_arrays_;
  std::vector<BufferId> read_first_, written_back_;
  std::uint32_t next_warp_ = 0;
  bool folds_ = false;
  bool reduces_ = false;  // totals are read until the next barrier
};

}  // namespace graphrun::cuda
