// tilings.h: selects the tiling that the user wants for a region (SessionOptions::tiling), by the names that `graphrun
// plan` prints: "warp:512x2x66" (tile of a StepTiling, threads, blocks per cluster, clusters), or "warp" for the first
// tiling with that tile.
// Contract: a region without the wanted tiling keeps its first one; at least one region must offer it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/error.h"
#include "graphrun/executor.h"

namespace graphrun {

class WantedTiling {
 public:
  // `name` as above; "": no preference. Throws Error (tiling.name).
  explicit WantedTiling(std::string_view name);

  void choose(RegionPlan& plan) const;  // sets the tiling to a matching choice
  // Checks the choices of all regions of a program; throws Error (tiling.unknown).
  void check(std::span<const std::vector<RegionChoice>> regions) const;

 private:
  bool is(const RegionChoice& choice) const;

  std::string name_;
};

std::string tiling_name(const Tiling& tiling);  // "" unless chosen among several

}  // namespace graphrun
