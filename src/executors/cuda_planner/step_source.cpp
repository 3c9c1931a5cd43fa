#include "executors/cuda_planner/step_source.h"

#include <fmt/format.h>

#include "executors/cuda_planner/step_kernel.h"

namespace graphrun::cuda {

std::string step_prelude(MathMode math) {
  return fmt::format(R"(#include "kernels/cuda/tile/block.h"
#include "kernels/cuda/tile/functions.h"
#include "kernels/cuda/tile/grid.h"
#include "kernels/cuda/tile/pair.h"
#include "kernels/cuda/tile/product.h"
#include "kernels/cuda/tile/slice_sums.h"
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

namespace {

// By itself ptxas aims at fewer registers than a thread can have, and then puts the instructions of one row after those
// of another, where they could overlap: realestate_1h takes 0.88 us instead of 0.79, with pairs 1.18 instead of 0.70.
// Many warps overlap anyway: stock_800k is slower with it.
std::string_view option_for(const Tiling& tiling) {
  const RowTile tile = std::get<StepTiling>(tiling).tile;
  return tile == RowTile::thread || tile == RowTile::pair ? "// nvrtc --maxrregcount=255\n" : "";
}

// f(region, name, text) for each kernel.
template <class F>
void each_kernel(const Program& program, F f) {
  for (const Phase& phase : program.phases) {
    for (const Region& region : phase.regions) {
      if (!std::holds_alternative<StepTiling>(region.tiling)) continue;
      const std::string name = step_kernel_name(program, phase, region);
      f(region, name,
        fmt::format("// {}, {}\n{}\n", phase.name, to_string(region.tiling),
                    step_kernel(name, program, phase, region).source));
    }
  }
}

}  // namespace

std::string step_source(const Program& program) {
  std::string all;
  each_kernel(program, [&](const Region&, const std::string&, const std::string& text) { all += text; });
  return all.empty() ? all : step_prelude(program.math) + all;
}

std::vector<StepSource> step_sources(const Program& program) {
  std::vector<StepSource> sources;
  each_kernel(program, [&](const Region& region, const std::string& name, const std::string& text) {
    sources.push_back({name, fmt::format("{}{}{}", option_for(region.tiling), step_prelude(program.math), text)});
  });
  return sources;
}

}  // namespace graphrun::cuda
