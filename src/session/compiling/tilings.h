// tilings.h: which of the tilings that an executor offers for a region a user wants (SessionOptions::tiling), by the
// names that `graphrun plan` prints: "warp:512x2x66" for the tile of a StepTiling, its threads, blocks of a cluster,
// and clusters; "warp" for the first one with that tile.
// Contract: a region that is not offered what is wanted keeps the first; one of the program must be offered it.
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
  // `name` as above; "": none. Throws Error (tiling.name).
  explicit WantedTiling(std::string_view name);

  void choose(RegionPlan& plan) const;  // what it is tiled by, of what it is offered
  // What the regions of a program were offered; throws Error (tiling.unknown).
  void check(std::span<const std::vector<RegionChoice>> regions) const;

 private:
  bool is(const RegionChoice& choice) const;

  std::string name_;
};

std::string tiling_name(const Tiling& tiling);  // "" of one that is not chosen among several

}  // namespace graphrun
