// plan_page.h: a memory plan as a self-contained HTML page (html.h), with its picture.
// Contract: a pure function of the Program and of the arena sizes without regions and without reuse.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graphrun/program.h"

namespace graphrun::cli {

std::string plan_page(const Program& program, std::string_view executor, std::uint64_t without_regions,
                      std::uint64_t without_regions_and_reuse);

}  // namespace graphrun::cli
