// flags.h: table of all flags: name, value, meaning, verbs, environment variable.
// Contract: parsing, help, completion and "goes with" messages all follow from the table; to add a flag, add a row. A
// name occurs in one row and has one meaning.
// Not handled here: parsing the command line (arguments.cpp) and printing help (help.cpp, man.cpp, completion.cpp).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/command_line/arguments.h"

namespace graphrun::cli {

// Completions of a flag's value.
enum class Completes {
  nothing,
  files,
  folders,
  executors,
  targets,
  formats,
  instruction_sets,
  jit,
  math,
  axes,
  settings
};

struct Flag {
  std::string_view name;   // "--epochs"
  std::string_view value;  // placeholder of its value in the help: "N"; empty: a switch
  std::string_view group;  // its heading in the help
  std::string_view verbs;  // "plan verify"; empty: every verb
  std::string_view help;   // "{train: none; sweep: MODEL-sweep}" lists texts by verb, "{stdout; report: r.html}" too
  void (*set)(Arguments& arguments, std::string_view value);  // throws BadValue; the last one given wins
  Completes completes = Completes::nothing;
  std::string_view variable = {};  // environment variable, read if the flag is absent
  std::string_view letter = {};    // "-v"
  // Value without =VALUE; empty: a value is required. With it, the next word is never the value.
  std::string_view bare = {};
};

// Reason to reject a value: "must be a whole number from 1 on, got '-3'".
struct BadValue {
  std::string reason;
};

std::span<const Flag> flags();
bool has_word(std::string_view words, std::string_view word);  // words separated by blanks
bool belongs(const Flag& flag, std::string_view verb);
std::string help_of(const Flag& flag, std::string_view verb = {});  // with the text of one verb, or of all
const Flag* find_flag(std::string_view name);                       // null if there is none
// Flag that replaced a former spelling; any other name is returned unchanged.
std::string_view current_name(std::string_view name, std::string_view verb);

}  // namespace graphrun::cli
