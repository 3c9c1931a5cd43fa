// stored_arguments.h: the command line of a stored run, to run it again or to look at it.
// Contract: the model is the one that the run kept; paths are those of the folder that it was given in, and its data
// are found wherever the command is given now. Throws Error (kind input).
#pragma once

#include <string>

#include "cli/command_line/arguments.h"
#include "graphrun/run_folder.h"

namespace graphrun::cli {

// What the run wrote is not written again.
Arguments stored_arguments(const std::string& run, const RunOrigin& origin);

// Whether --data-dir was typed: it is not that of the environment.
bool is_given(const std::string& data_dir);

}  // namespace graphrun::cli
