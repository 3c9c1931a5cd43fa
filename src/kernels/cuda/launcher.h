// launcher.h: how the project's CUDA kernels reach a stream, and the machine parameters that grids may depend on.
// Contract: kernels are launched only through a Launcher, whose owner checks, counts and names every launch. Grids are
// functions of (shapes, Machine), never of the installed device. Leaves to others: the stream, capture and errors
// (executors/cuda), the kernels (the .cu files in this folder).
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace graphrun::cuda {

struct Machine {
  int multiprocessors = 0;
  std::uint64_t library_workspace = 0;  // bytes available to a step of the matrix library
  bool warpgroups = false;              // whether warpgroups multiply on tensor cores (wgmma.cuh)
};

struct Grid {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint32_t shared_bytes = 0;  // dynamic shared memory of a block
};

// op(a) @ op(b) of row-major f32 matrices for the matrix library. There are `matrices` of them, each operand's `stride`
// elements apart (0: the same matrix).
struct LibraryMatmul {
  const void* a = nullptr;
  const void* b = nullptr;
  void* out = nullptr;
  void* workspace = nullptr;
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t matrices = 1;
  std::int64_t a_stride = 0, b_stride = 0, out_stride = 0;
  Precision precision = Precision::fp32;
};

class Launcher {
 public:
  explicit Launcher(const Machine& machine) : machine_(machine) {}
  virtual ~Launcher() = default;
  const Machine& machine() const { return machine_; }

  // `kernel` is the address of a __global__ function, `arguments` one pointer for each of its parameters.
  virtual void launch(const void* kernel, const char* name, Grid grid, std::uint32_t threads, void** arguments) = 0;
  virtual void matmul(const LibraryMatmul& product) = 0;

 private:
  Machine machine_;
};

// Blocks of `threads` threads for `items` items, limited to a few times the capacity of the machine.
inline Grid linear_grid(const Machine& machine, std::uint64_t items, std::uint32_t threads) {
  const std::uint64_t wanted = (items + threads - 1) / threads;
  const auto most = static_cast<std::uint64_t>(machine.multiprocessors) * 16;
  const std::uint64_t blocks = wanted < most ? wanted : most;
  return {static_cast<std::uint32_t>(blocks > 0 ? blocks : 1), 1, 1};
}

// Grid of one chain of elementwise steps in a generated kernel. The plan and the kernel's text must agree on it.
inline constexpr std::uint32_t kElementThreads = 256;
inline constexpr std::uint64_t kPacked = 1u << 16;  // with fewer elements, more threads are faster
struct ElementGrid {
  std::uint32_t width = 1;  // elements per thread at a time
  std::uint32_t blocks = 0;
};
inline ElementGrid element_grid(std::uint64_t elements, const Machine& machine) {
  const std::uint32_t width = elements >= kPacked ? 4 : 1;
  return {width, linear_grid(machine, (elements + width - 1) / width, kElementThreads).x};
}

using LaunchFn = void (*)(const KernelArgs&, Launcher&);

// Steps that a product applies to its result before it stores it: the addition of `bias`, one number per column,
// then `op`, whose other operand, if any, has the shape of the result.
struct ProductEpilogue {
  const float* bias = nullptr;
  const float* with = nullptr;
  bool with_first = false;  // `with` is the first operand of `op`
  Op op = {};               // table in matmul_plan.h; 0: none
  bool steps = false;       // whether there is any step
};

// The launch function of an op; null if CUDA has no kernel for it. supports() accepts no other op.
LaunchFn find_kernel(Op op);

// The families, queried in turn.
LaunchFn find_elementwise(Op op);
LaunchFn find_movement(Op op);
LaunchFn find_rearrange(Op op);
LaunchFn find_reductions(Op op);
LaunchFn find_lines(Op op);
LaunchFn find_random(Op op);
LaunchFn find_scatter(Op op);
LaunchFn find_sources(Op op);
void launch_matmul(const KernelArgs& args, Launcher& launcher);
void launch_matmul(const KernelArgs& args, const ProductEpilogue& epilogue, Launcher& launcher);  // one matrix

struct MatmulPlan;
void launch_matmul_wide(const KernelArgs& args, const MatmulPlan& plan, const ProductEpilogue& epilogue,
                        Launcher& launcher, float* out);
void launch_matmul_flat(const KernelArgs& args, const MatmulPlan& plan, const ProductEpilogue& epilogue,
                        Launcher& launcher, float* out);
void launch_matmul_many(const KernelArgs& args, const MatmulPlan& plan, Launcher& launcher);

}  // namespace graphrun::cuda
