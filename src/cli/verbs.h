// verbs.h: what the command line can do: one function a verb, each in its own file.
// Contract: a verb writes results to stdout and says all else through Diagnostics; it returns the exit code and throws
// Error for what its user can mend. To add one: write its file, add a row in verbs.cpp; its flags are rows of
// flags.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "diagnostics.h"

namespace graphrun::cli {

// The words that follow a verb.
enum class Words { none, model, model_and_data, shell, verb };

struct Verb {
  std::string_view name, alias;  // alias: another name it answers to; may be empty
  Words words;
  std::string_view summary;   // one line of --help
  std::string_view about;     // of its own help: what it does and prints
  std::string_view examples;  // of its own help, one command a line
  int (*run)(const Arguments& arguments, Diagnostics& diagnostics);
};

std::span<const Verb> verbs();                 // the first is the default
const Verb* find_verb(std::string_view name);  // by name or alias; null when there is none
std::vector<std::string> verb_names();         // aliases too

int run_train(const Arguments& arguments, Diagnostics& diagnostics);
int run_eval(const Arguments& arguments, Diagnostics& diagnostics);
int run_predict(const Arguments& arguments, Diagnostics& diagnostics);
int run_plan(const Arguments& arguments, Diagnostics& diagnostics);
int run_verify(const Arguments& arguments, Diagnostics& diagnostics);
int run_show(const Arguments& arguments, Diagnostics& diagnostics);
int run_check(const Arguments& arguments, Diagnostics& diagnostics);
int run_bench(const Arguments& arguments, Diagnostics& diagnostics);
int run_devices(const Arguments& arguments, Diagnostics& diagnostics);
int run_completion(const Arguments& arguments, Diagnostics& diagnostics);
int run_help(const Arguments& arguments, Diagnostics& diagnostics);

}  // namespace graphrun::cli
