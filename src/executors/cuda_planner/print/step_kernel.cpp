#include "executors/cuda_planner/print/step_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "executors/cuda_planner/print/kernel_frame.h"

namespace graphrun::cuda {
namespace {

// Maximum warps of a block that computes those of a cluster: more have too few registers for a row and its sums.
constexpr std::int64_t kMaxTogether = 12;

constexpr std::string_view kVariables = "GRAPHRUN_TILE_VARIABLE(unsigned graphrun_fault = 0)\n\n";

std::string headers(MathMode math) {
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
)",
                     math == MathMode::fast ? "fast::Float" : "float");
}

// ptxas alone targets fewer registers than a thread can have and serializes instructions of rows that could overlap.
// The rows of many warps overlap without the option, and are faster.
std::string_view option_for(const Tiling& tiling) {
  const RowTile tile = std::get<StepTiling>(tiling).tile;
  return tile == RowTile::thread || tile == RowTile::pair ? "// nvrtc --maxrregcount=255\n" : "";
}

// Calls f(region, kernel, heading) for each kernel.
template <class F>
void each_kernel(const Program& program, bool in_slots, F f) {
  for (const Phase& phase : program.phases) {
    for (const Region& region : phase.regions) {
      if (!std::holds_alternative<StepTiling>(region.tiling)) continue;
      KernelRegion of{step_kernel_name(program, phase, region), program, phase, region,
                      in_slots && fits_slots(phase, region)};
      const std::string heading = fmt::format("// {}, {}\n", phase.name, to_string(region.tiling));
      const StepKernel made = step_kernel(of);
      f(region, made, heading);
      of.together = of.in_slots ? warps_together(phase, region) : 0;
      if (of.together == 0) continue;
      of.name += kInOneBlock;
      const StepKernel in_one = step_kernel(of);
      if (!in_one.text.empty() && in_one.pointers == made.pointers && in_one.keys == made.keys)
        f(region, in_one, heading);
    }
  }
}

}  // namespace

StepKernel step_kernel(const KernelRegion& of) {
  const RowTile tile = std::get<StepTiling>(of.region.tiling).tile;
  return tile == RowTile::block ? block_kernel(of) : tile == RowTile::split ? split_kernel(of) : row_kernel(of);
}

bool fits_slots(const Phase& phase, const Region& region) {
  const auto* tiling = std::get_if<StepTiling>(&region.tiling);
  return tiling != nullptr && tiling->tile != RowTile::block && tiling->tile != RowTile::split &&
         tiling->clusters == 1 && tiling->scratch_bytes == 0 && region.first() == 0 &&
         region.last == phase.steps.size();
}

std::uint32_t warps_together(const Phase& phase, const Region& region) {
  const auto& tiling = std::get<StepTiling>(region.tiling);
  if (!fits_slots(phase, region) || tiling.cluster == 1 || tiling.tile == RowTile::warp) return 0;
  const std::int64_t warps = divide_up(warps_with_rows(phase, tiling), std::int64_t{joined_warps(region)});
  return static_cast<std::uint32_t>(divide_up(warps, divide_up(warps, kMaxTogether)));
}

std::string step_kernel_name(const Program& program, const Phase& phase, const Region& region) {
  return fmt::format("steps_{}_{}", &phase - program.phases.data(), region.first() + 1);
}

std::string step_prelude(MathMode math) {
  return fmt::format("{}{}", headers(math), kVariables);
}

std::string step_source(const Program& program) {
  std::string all;
  each_kernel(program, false, [&](const Region&, const StepKernel& kernel, const std::string& heading) {
    all += heading + kernel.text + "\n";
  });
  return all.empty() ? all : step_prelude(program.math) + all;
}

std::vector<StepKernel> step_sources(const Program& program, bool in_slots) {
  std::vector<StepKernel> kernels;
  const std::string prelude = step_prelude(program.math);
  each_kernel(program, in_slots, [&](const Region& region, StepKernel kernel, const std::string& heading) {
    kernel.text = fmt::format("{}{}{}{}\n", option_for(region.tiling), prelude, heading, kernel.text);
    for (std::string& piece : kernel.pieces)
      piece.insert(0, (&piece == kernel.pieces.data() ? prelude : headers(program.math)) + heading);
    kernels.push_back(std::move(kernel));
  });
  return kernels;
}

}  // namespace graphrun::cuda
