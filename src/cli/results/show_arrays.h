// show_arrays.h: `show --weights FILE [NAME ...]` shows arrays of a file, without a model. `show MODEL --values [NAME
// ...]` shows a model's values and gradients over a batch.
#pragma once

#include "cli/command_line/arguments.h"
#include "cli/command_line/diagnostics.h"

namespace graphrun::cli {

int show_arrays(const Arguments& arguments);
int show_values(const Arguments& arguments, Diagnostics& diagnostics);

}  // namespace graphrun::cli
