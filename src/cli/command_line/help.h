// help.h: texts of --help, `help` and --version, generated from the tables of verbs and flags; man.h shares parts.
// Contract: --help has at most 40 lines of 100 columns; the help of a verb lists its flags in 110 columns, its own
// first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line/flags.h"
#include "cli/command_line/verbs.h"

namespace graphrun::cli {

struct HelpRow {
  std::string name, text;
};
std::vector<HelpRow> exit_codes();
std::vector<HelpRow> environment();
std::vector<HelpRow> examples();                             // a command and its effect
std::string_view positionals_text(Positionals positionals);  // " MODEL.json"
std::string flag_name(const Flag& flag);                     // "-o, --output"

std::vector<std::string> topics();  // words after `help` that are not commands
std::string topic_text(const std::string& topic);
std::string help_text();
std::string help_text(const Verb& verb);
std::string version_text();

}  // namespace graphrun::cli
