// stored_arguments.h: the command line of a stored run, to repeat or inspect it.
// Contract: the model is the stored one; paths are relative to the folder of the original command, so that the data are
// found from any folder. Throws Error (kind input).
#pragma once

#include <string>

#include "cli/command_line/arguments.h"
#include "graphrun/run_folder.h"

namespace graphrun::cli {

// Parses the stored command with the stored model. The outputs of the run are not written again.
Arguments stored_arguments(const std::string& run, const RunProvenance& provenance);

// Whether --data-dir was given, rather than taken from the environment.
bool is_given(const std::string& data_dir);

}  // namespace graphrun::cli
