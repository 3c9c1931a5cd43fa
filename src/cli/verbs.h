// verbs.h: what the command line can do: one function a verb, each in its own file.
// Contract: a verb writes results to stdout and says all else through Diagnostics; it returns the exit code and throws
// Error for what its user can mend. To add one: write its file, list it in verbs.cpp; its flags go to arguments.cpp.
#pragma once

#include <span>
#include <string_view>

#include "arguments.h"
#include "diagnostics.h"

namespace graphrun::cli {

struct Verb {
  std::string_view name;
  std::string_view summary;  // for --help
  int (*run)(const Arguments& arguments, Diagnostics& diagnostics);
};

std::span<const Verb> verbs();                 // the first is the default
const Verb* find_verb(std::string_view name);  // null when there is none

int run_train(const Arguments& arguments, Diagnostics& diagnostics);
int run_plan(const Arguments& arguments, Diagnostics& diagnostics);
int run_verify(const Arguments& arguments, Diagnostics& diagnostics);

}  // namespace graphrun::cli
