// printed_command.h: shell command that reproduces an action of the studio.
// Contract: pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line/arguments.h"

namespace graphrun::cli {

std::string command_line(const std::vector<std::string>& words);

// Command that trains the stored model of the folder `run`, or the model file if `run` is empty. Run it from the folder
// in which the studio was started.
std::string training_command(const Arguments& arguments, const std::string& run);

}  // namespace graphrun::cli
