// step_kernel.h: source of the kernels that run regions over rows: entire training steps if a region covers a phase.
// The source has one line per step, with its name; all algorithms are in src/kernels/cuda/tile.
// Contract: pure functions of the Program; need no device. Values shared by all rows are in registers (scalars) or in
// the shared memory of each block for the whole launch; block 0 writes them back at the end. An argument sets how many
// times the region runs. The scratch must be zero when the kernel begins.
// Not here: choice of a region's steps (src/compiler, tile_costs.h), compiling (executors/cuda/nvrtc.h) and launching.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/program.h"

namespace graphrun::cuda {

// A region over rows, to be the kernel `name`. A kernel in slots runs several networks in one launch, each with its own
// arguments (SlotArguments of kernels/cuda/tile/step.h). Its text has neither keys nor constants of the Program, so
// that Programs which differ only in them have the same text; results are bitwise those of the kernel of one network.
struct KernelRegion {
  std::string name;
  const Program& program;
  const Phase& phase;
  const Region& region;
  bool in_slots = false;
  // Warps of a block that computes all blocks of a cluster, with the bits of the cluster; 0: the cluster does.
  std::uint32_t together = 0;
};
// Source of a kernel as one text, and optionally in pieces to compile in parallel and link to the same kernel.
struct KernelSource {
  std::string text;
  std::vector<std::string> pieces = {};
  std::uint32_t threads = 0;  // block size
};
// The text defines `extern "C" __global__ void NAME(Arguments<N>)` and follows step_prelude().
struct StepKernel : KernelSource {
  std::string name;
  std::vector<BufferId> pointers = {};   // buffers whose addresses the kernel receives
  std::vector<std::uint64_t> keys = {};  // keys of random numbers, if it runs in slots
  bool in_slots = false;
  bool in_one_block = false;  // a block computes those of a cluster
};
StepKernel step_kernel(const KernelRegion& of);
// Whether a region can run in slots: it is a whole phase, and its blocks are one cluster, since those of several
// networks may run one after the other.
bool fits_slots(const Phase& phase, const Region& region);
// KernelRegion::together of a region that runs in slots, if many networks run faster so; else 0.
std::uint32_t warps_together(const Phase& phase, const Region& region);

// Name of the kernel of a region over rows in the program's phase.
std::string step_kernel_name(const Program& program, const Phase& phase, const Region& region);
inline constexpr const char* kInOneBlock = "_in_one_block";  // end of the name of a kernel in one block

// Code before the kernels.
std::string step_prelude(MathMode math);
// All step kernels of a program as one text; "" if it has no region over rows for a GPU.
std::string step_source(const Program& program);

// The kernels with complete sources and pieces; with `in_slots` for slots where they fit. Kernels of one block follow
// those of a cluster, and have the same pointers and keys.
std::vector<StepKernel> step_sources(const Program& program, bool in_slots = false);

}  // namespace graphrun::cuda
