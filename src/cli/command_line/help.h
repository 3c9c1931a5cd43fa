// help.h: what --help and --version print, from the tables of verbs and flags, and what man.h tells with them.
// Contract: lines are at most 110 columns wide; every flag, variable and exit code is told.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line/verbs.h"

namespace graphrun::cli {

struct Told {
  std::string name, text;
};
std::vector<Told> exit_codes();
std::vector<Told> environment(const Verb* verb);  // of one verb when it is given
std::span<const Told> examples();                 // a command, and what it does; may be empty
std::string_view words_text(Words words);         // " MODEL.json"

std::string help_text();
std::string help_text(const Verb& verb);
std::string version_text();

}  // namespace graphrun::cli
