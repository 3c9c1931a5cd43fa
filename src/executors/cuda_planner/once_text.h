// once_text.h: the text of steps that run once, for what all rows share: each block runs them for itself, numbers in
// every thread, arrays element by element with a thread each.
// Contract: steps of one loop read and write the same element only; whatever else one thread reads of what another
// wrote has a barrier between. Names are those of Places. Leaves to others: expressions (row_text.h), the kernel
// (step_kernel.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "executors/cuda_planner/row_text.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

// Where what all rows share lies in the kernel of a region, by the root of its storage: a number in a variable of each
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

  // What is read and written where it lies in the arena: rings, and data that batches are taken of.
  bool stays_in_arena(const Step& step, std::size_t input) const;
  bool is_number(BufferId root) const;
  std::string name(BufferId root) const;
  const std::vector<Array>& arrays() const { return arrays_; }
  const std::string& passed(BufferId root) const { return passed_.at(root); }

  // An array of which each block has so many elements: no other has the same, or all of a cluster's rank.
  void slice(BufferId root, std::int64_t elements, std::int64_t capacity);
  bool is_sliced(BufferId root) const { return slices_.contains(root); }
  // A sliced array that no step reads but in the loop that makes it: its numbers go to the arena, at `pointer`, in the
  // step that `leaves` them, and are in no memory before.
  void pass(BufferId root, std::string pointer) { passed_[root] = std::move(pointer); }
  bool is_passed(BufferId root) const { return passed_.contains(root); }
  std::int64_t elements(BufferId of) const;  // that a block has
  std::int64_t capacity(BufferId root) const { return std::ranges::find(arrays_, root, &Array::root)->capacity; }

 private:
  const Program& program_;
  std::map<BufferId, std::int64_t> slices_;
  std::map<BufferId, std::string> passed_;
  std::set<BufferId> written_;  // roots that steps of the region write
  std::vector<Array> arrays_;
};

class OnceText {
 public:
  using Pointer = std::function<std::string(BufferId)>;  // of a ring that records go to
  OnceText(const Program& program, const Phase& phase, const Region& region, const Places& places,
           std::uint32_t threads, Pointer ring, std::string_view arrays = "s.");

  void run(std::uint32_t first, std::uint32_t last);  // steps of the phase
  // Element i of a reduced value is `total(offset + i)` from here on, until the next barrier.
  void combined(BufferId value, const std::string& total, std::int64_t offset);
  void rows_read(const Step& step);  // what a row step reads of what all rows share
  void found(BufferId number, std::string name) { numbers_[root(number)] = std::move(name); }  // from here on
  void after_barrier() { since_barrier_.clear(); }

  // The text so far, at a point where all threads see what was written.
  std::string before_rows();
  std::string end_of_step();

  TextCall call(const Step& step) const;     // with the names of operands that have no rows
  std::string value(BufferId number) const;  // what holds it now
  std::string array(BufferId of) const;      // its first element's address
  bool folds() const { return folds_; }      // threads fold arrays together
  const std::vector<BufferId>& read_first() const { return read_first_; }      // roots whose values come from the arena
  const std::vector<BufferId>& written_back() const { return written_back_; }  // roots there when the kernel ends
  std::vector<BufferId> unread_numbers() const;                                // of those: by no step of the region
  const std::set<BufferId>& read_arrays() const { return read_arrays_; }       // roots: not only where they are made

 private:
  struct Access {
    BufferId root;
    bool writes;
    bool same;            // element i + offset, for element i of the step
    std::int64_t offset;  // in the root, where same
  };
  struct Loop {
    std::int64_t elements = 0;
    std::vector<std::pair<std::uint32_t, TextCall>> steps;  // with the names of operands where the step stands
    std::vector<Access> accesses;
    std::map<BufferId, std::string> totals;  // of reduced values that begin in it: element i
  };

  const Buffer& buffer(BufferId id) const { return program_.buffers[id]; }
  BufferId root(BufferId id) const { return storage_root(program_, id); }
  std::int64_t elements(const Step& step) const;  // that a block computes
  View view(BufferId id) const;
  std::vector<Access> accesses(const Step& step) const;
  void number(std::uint32_t index);
  void record(const Step& step);
  void read_by_all(const Step& step);
  void loop(std::uint32_t index);
  void flush();
  void barrier();
  void wait_for(const std::vector<Access>& accesses);
  std::string text_of(const Loop& loop);
  void find_order();
  void find_exact();
  std::string literal(BufferId of) const;

  const Program& program_;
  const Phase& phase_;
  const Region& region_;
  const Places& places_;
  std::uint32_t threads_;
  Pointer ring_;
  std::string arrays_;        // what precedes their names
  std::set<BufferId> exact_;  // outputs of steps that compute in float
  std::string text_;
  std::vector<Loop> open_;             // not written yet
  std::vector<Access> since_barrier_;  // of loops that are written
  std::map<BufferId, std::string> numbers_;
  std::set<BufferId> read_arrays_;
  std::vector<BufferId> read_first_, written_back_;
  std::uint32_t next_warp_ = 0;
  bool folds_ = false;
  bool reduces_ = false;  // totals are read until the next barrier
};

}  // namespace graphrun::cuda
