#include "kernels/cuda/launcher.h"

namespace graphrun::cuda {

LaunchFn find_kernel(std::string_view op) {
  if (op == "matmul") return launch_matmul;
  if (op == "sum") return launch_sum;
  if (const LaunchFn found = find_movement(op)) return found;
  if (const LaunchFn found = find_sources(op)) return found;
  return find_elementwise(op);
}

}  // namespace graphrun::cuda
