// show_arrays.h: `show --weights FILE [NAME ...]`: what a weights file holds.
// Contract: needs no model. As JSON an object with file and arrays, each with name, dtype, shape, elements, finite,
// min, max, mean, deviation, norm, zeros; of those that are named also values, flat. Throws Error.
#pragma once

#include "arguments.h"

namespace graphrun::cli {

int show_arrays(const Arguments& arguments);

}  // namespace graphrun::cli
