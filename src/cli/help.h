// help.h: what --help and --version print, from the tables of verbs and flags.
// Contract: lines are at most 110 columns wide; every flag, variable and exit code is told.
#pragma once

#include <string>

#include "verbs.h"

namespace graphrun::cli {

std::string help_text();
std::string help_text(const Verb& verb);
std::string version_text();

}  // namespace graphrun::cli
