// tile_choice.h: how many rows a tile has and how many partitions a region, and how steps over elements are grouped,
// where a test wants a say. Contract: what is not set is chosen as always; bits may differ, values do not. Leaves to
// others: the choice itself (region_layout.h, elements.h, the executor's plan_region).
#pragma once

#include <cstdint>
#include <optional>

#include "graphrun/target.h"

namespace graphrun::plan {

struct TileChoice {
  std::int64_t rows = 0;                       // 0: from shapes and target
  std::int32_t partitions = 0;                 // 0: from shapes and target
  std::optional<ElementLimits> elements = {};  // none: the target's
};

}  // namespace graphrun::plan
