// plan_buffers.h: `plan --buffers`: offsets for a list of buffers read from a file, without a model.
// Contract: returns exit code 3 and writes no file if the search does not meet the capacity in time; reports the best
// size and the proven bound. Ctrl-C stops the search, writes the best result, and returns exit code 130.
#pragma once

#include "cli/command_line/arguments.h"

namespace graphrun::cli {

int plan_buffers(const Arguments& arguments);

}  // namespace graphrun::cli
