// kernel_frame.h: the frame of a step kernel, the same with all tiles: its pointers into the arena, loads and stores of
// the values that all rows share, and the text around the body.
// Contract: pointers are numbered in the order of their first use. Leaves to others: the bodies (step_kernel.cpp,
// block_kernel.cpp, split_kernel.cpp).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "executors/cuda_planner/once_text.h"
#include "executors/cuda_planner/step_kernel.h"
#include "graphrun/program.h"

namespace graphrun::cuda {

class KernelFrame {
 public:
  // `arrays` precedes the names of arrays: "" if they stay in the arena.
  KernelFrame(std::string_view name, const Program& program, const Phase& phase, const Region& region,
              std::string_view arrays = "s.");
  KernelFrame(const KernelFrame&) = delete;
  KernelFrame& operator=(const KernelFrame&) = delete;

  const Program& program;
  const Phase& phase;
  const Region& region;
  const StepTiling tiling;
  StepKernel kernel;
  Places places;
  OnceText once;
  BufferId count = kNoBuffer;  // of samples, where a batch may be partial

  const Buffer& buffer(BufferId id) const { return program.buffers[id]; }
  BufferId root(BufferId id) const { return storage_root(program, id); }
  std::string pointer(BufferId id, std::string_view qualifier = "");  // into the arena
  std::string scratch();                                              // "a.at[2]"; "nullptr": the region has none
  std::string count_text() const;                                     // number of samples
  std::string name(BufferId id) const;                                // for a comment, with the end of the line

  // Values that all rows share: members of shared memory, and statements around the loop over steps.
  struct States {
    std::string members, numbers, loads, stores;
    std::string slices;  // stores that one cluster does, each block its slice
  };
  States states();

  // The text before the kernel, with definitions and members of its shared memory; the kernel; the text after it.
  std::string begin(std::string_view definitions, std::string_view members) const;
  std::string definition(std::string_view body) const;
  std::string end() const;

 private:
  std::size_t pointer_index(BufferId id);

  const bool in_arena_;  // arrays are
};

StepKernel block_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region);
StepKernel split_kernel(std::string_view name, const Program& program, const Phase& phase, const Region& region);

// Names as comments of the text have them.
std::string printable_name(std::string_view name);
std::string comment_of(const Step& step);
std::string step_comment(const Step& step);  // with the end of the line

}  // namespace graphrun::cuda
