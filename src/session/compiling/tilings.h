// tilings.h: which of the tilings that an executor offers for a region a user wants (SessionOptions::tiling), by the
// names that `graphrun plan` prints: "warp:512x2x66" for the tile of a StepTiling, its threads, blocks of a cluster,
// and clusters; "warp" for the first one with that tile.
// Contract: a region that is not offered what is wanted keeps the first; one of the program must be offered it.
#pragma once

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

  void choose(RegionPlan& plan);  // what it is tiled by, of what it is offered
  void check() const;             // after all regions; throws Error (tiling.unknown)

 private:
  std::string name_;
  std::vector<std::string> offered_;  // to the region that is offered most
  bool found_ = false;
};

std::string tiling_name(const Tiling& tiling);  // "" of one that is not chosen among several

}  // namespace graphrun
