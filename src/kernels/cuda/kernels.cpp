#include "graphrun/op.h"
#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

LaunchFn find_kernel(Op op) {
  if (op == Op::matmul) return launch_matmul;
  for (const auto find :
       {find_movement, find_rearrange, find_reductions, find_lines, find_random, find_scatter, find_sources}) {
    if (const LaunchFn found = find(op)) return found;
  }
  return find_elementwise(op);
}

}  // namespace graphrun::cuda
