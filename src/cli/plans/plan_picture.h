// plan_picture.h: a memory plan as a picture: arena offset over time.
// Contract: a pure function of the Program. Time runs from left to right over the steps of all phases, offsets run
// upwards. Live values never overlap. If some values are live only part of the time, only their part of the arena is
// drawn. Not handled here: files (plan.cpp), live ranges (buffer_uses.h).
#pragma once

#include <string_view>

#include "graphrun/program.h"
#include "plot/drawing.h"

namespace graphrun::cli {

plot::Drawing plan_picture(const Program& program, std::string_view executor);

}  // namespace graphrun::cli
