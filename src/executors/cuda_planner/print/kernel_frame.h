// kernel_frame.h: parts of a step kernel that are the same for all tiles: its pointers into the arena, loads and stores
// of the values shared by all rows, and the code around the body.
// Contract: pointers are numbered in order of first use. Not here: the bodies (row_kernel.cpp, block_kernel.cpp,
// split_kernel.cpp).
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "executors/cuda_planner/print/once_text.h"
#include "executors/cuda_planner/print/step_kernel.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

class KernelFrame {
 public:
  // `arrays` is the prefix of array names; "" if arrays stay in the arena.
  explicit KernelFrame(const KernelRegion& of, std::string_view arrays = "s.");
  KernelFrame(const KernelFrame&) = delete;
  KernelFrame& operator=(const KernelFrame&) = delete;

  const Program& program;
  const Phase& phase;
  const Region& region;
  const StepTiling tiling;
  const bool in_slots;
  const std::uint32_t together;  // warps of a block that computes all blocks of the cluster; 0: it is one of them
  const std::uint32_t joined;    // adjacent warps of the cluster that a warp of such a block plays as one
  const std::uint32_t threads;   // per block
  StepKernel kernel;
  Places places;
  OnceText once;
  BufferId count = kNoBuffer;  // number of samples, if a batch may be partial

  const Buffer& buffer(BufferId id) const { return program.buffers[id]; }
  BufferId root(BufferId id) const { return storage_root(program, id); }
  std::string pointer(BufferId id, std::string_view qualifier = "");  // into the arena
  std::string scratch();                                              // "a.at[2]"; "nullptr" if the region has none
  std::string key(const Step& step);    // "a.keys[0]", the key of a step's random numbers; "" if it has none
  std::string count_text() const;       // number of samples
  std::string name(BufferId id) const;  // comment and newline

  // Values shared by all rows: members of shared memory, and statements around the loop over steps.
  struct States {
    std::string members, numbers, loads, stores;
    std::string slices;  // stores by one cluster, where each block stores its slice
  };
  States states();

  // Name of the table with the rows of a minibatch step (kernels/cuda/tile/picks.h), one for each order of shuffling;
  // "" if each row is computed by itself. All threads run the new statements before any of those rows is read.
  std::string picked_table(const TextCall& call, const Step& step);
  std::string picked_members, picked_statements;

  // Code before the kernel, with definitions and members of its shared memory; the kernel; code after it.
  std::string begin(std::string_view definitions, std::string_view members) const;
  std::string definition(std::string_view body) const;
  std::string end() const { return fmt::format("}}  // namespace {}\n", kernel.name); }

 private:
  std::size_t pointer_index(BufferId id);

  std::map<const Step*, std::size_t> keys_;    // places in kernel.keys
  const bool in_arena_;                        // arrays stay in the arena
  std::map<std::string, std::string> tables_;  // names of tables of picked rows
};

// Warps of a cluster that a warp computes as one, where a block computes the cluster: two if their sums are two of the
// same branch of the tree, and the order of two sums does not matter.
std::uint32_t joined_warps(const Region& region);
// Warps of a cluster that have rows in each step.
std::int64_t warps_with_rows(const Phase& phase, const StepTiling& tiling);
// Whether each step of the phase increments the state once and nothing else writes it, so the next value is one more.
bool counts_steps(const Program& program, const Phase& phase, BufferId number);

// Kernels by tile; row_kernel() is for threads, pairs and warps.
StepKernel row_kernel(const KernelRegion& of);
StepKernel block_kernel(const KernelRegion& of);
StepKernel split_kernel(const KernelRegion& of);

// Names for comments in generated code.
std::string printable_name(std::string_view name);
std::string comment_of(const Step& step);
std::string step_comment(const Step& step);  // includes the newline

}  // namespace graphrun::cuda
