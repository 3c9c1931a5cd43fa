#include "executors/cuda_planner/step_source.h"

#include <fmt/format.h>

#include "executors/cuda_planner/step_kernel.h"

namespace graphrun::cuda {

std::string step_prelude(MathMode math) {
  return fmt::format(R"(#include "kernels/cuda/tile/block.h"
#include "kernels/cuda/tile/functions.h"
#include "kernels/cuda/tile/grid.h"
#include "kernels/cuda/tile/product.h"
#include "kernels/cuda/tile/step.h"
#include "kernels/cuda/tile/warp_sums.h"
using namespace graphrun;
using namespace graphrun::cuda;
using namespace graphrun::cuda::tile;
using Number = {};
GRAPHRUN_TILE_VARIABLE(unsigned graphrun_fault = 0)

)",
                     math == MathMode::fast ? "fast::Float" : "float");
}

std::string step_source(const Program& program) {
  std::string text;
  for (const Phase& phase : program.phases) {
    for (const Region& region : phase.regions) {
      if (!std::holds_alternative<StepTiling>(region.tiling)) continue;
      text += fmt::format("// {}, {}\n", phase.name, to_string(region.tiling));
      text += step_kernel(step_kernel_name(program, phase, region), program, phase, region).source + "\n";
    }
  }
  return text.empty() ? text : step_prelude(program.math) + text;
}

}  // namespace graphrun::cuda
