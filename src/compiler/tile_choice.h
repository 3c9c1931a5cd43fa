// tile_choice.h: overrides for tests: rows per tile, partitions per region, and grouping of steps over elements.
// Contract: unset fields leave the usual choice; results may differ in rounding only. Not here: the choice itself
// (region_layout.h, elements.h, Executor::region_choices).
#pragma once

#include <cstdint>
#include <optional>

#include "graphrun/target.h"

namespace graphrun::plan {

struct TileChoice {
  std::int64_t rows = 0;                       // 0: from shapes and target
  std::int32_t partitions = 0;                 // 0: from shapes and target
  std::optional<ElementLimits> elements = {};  // unset: from the target
};

}  // namespace graphrun::plan
