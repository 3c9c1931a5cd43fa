// printed_command.h: the command line that does again what the studio did, as a shell takes it.
// Contract: pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line/arguments.h"

namespace graphrun::cli {

std::string command_line(const std::vector<std::string>& words);

// What trains the model that the folder `run` keeps, or the model file where it is empty, from the folder in which the
// studio was started.
std::string training_command(const Arguments& arguments, const std::string& run);

}  // namespace graphrun::cli
