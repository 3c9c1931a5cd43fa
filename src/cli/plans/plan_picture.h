// plan_picture.h: a memory plan as a picture: what lies at which offset of the arena, and when.
// Contract: a pure function of the Program. Time runs from left to right over the steps of all phases, offsets upwards;
// of two values that share bytes no two lie over each other. Where values that live for a part of the time have a part
// of the arena, that part is drawn; otherwise all of it. Leaves to others: files (plan.cpp), lifetimes (buffer_uses.h).
#pragma once

#include <string_view>

#include "graphrun/program.h"
#include "plot/drawing.h"

namespace graphrun::cli {

plot::Drawing plan_picture(const Program& program, std::string_view executor);

}  // namespace graphrun::cli
