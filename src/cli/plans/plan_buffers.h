// plan_buffers.h: `plan --buffers`: offsets for a list of buffers that comes from a file, without a model.
// Contract: exit code 3 where they were not brought below the capacity in the time, with what was reached and what is
// proven; no file is written then. Ctrl-C ends the search: what was found is written, exit code 130.
#pragma once

#include "cli/command_line/arguments.h"

namespace graphrun::cli {

int plan_buffers(const Arguments& arguments);

}  // namespace graphrun::cli
