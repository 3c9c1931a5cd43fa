// flags.h: the flags as one table: what each is called, takes, does, which verbs have it, which variable mirrors it.
// Contract: parsing, help, completion and "goes with" messages all follow from the table; to add a flag, add a row. Two
// rows may share a name when their verbs differ; then both take a value or neither does.
// Leaves to others: reading the command line (arguments.cpp) and telling of it (help.cpp, completion.cpp).
#pragma once

#include <span>
#include <string_view>

#include "cli/command_line/arguments.h"

namespace graphrun::cli {

// What a shell offers for a flag's value.
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
  std::string_view value;  // what stands for its value in the help: "N"; empty: a switch
  std::string_view group;  // its heading in the help
  std::string_view verbs;  // "plan verify"; empty: every verb
  std::string_view help;
  void (*set)(Arguments& arguments, std::string_view value);  // throws BadValue; the last one given wins
  Completes completes = Completes::nothing;
  std::string_view variable = {};  // of the environment, which says it where the command line does not
  std::string_view letter = {};    // "-v"
  // What it says without =VALUE, where it may stand so: then the next word is never its value.
  std::string_view bare = {};
};

// Why a value will not do: "must be a whole number from 1 on, got '-3'".
struct BadValue {
  std::string reason;
};

std::span<const Flag> flags();
bool belongs(const Flag& flag, std::string_view verb);
// The first row of that name; of those, the one of the verb when there is one. Null when there is none.
const Flag* find_flag(std::string_view name, std::string_view verb = {});

}  // namespace graphrun::cli
