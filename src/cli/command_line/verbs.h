// verbs.h: what the command line can do: one verb a file.
// Contract: a verb writes results to stdout and says all else through Diagnostics; it returns the exit code and throws
// Error for what its user can mend. To add one: write its file, which ends with its Verb, and name it in
// GRAPHRUN_VERBS; flags are rows of flags.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line/arguments.h"
#include "cli/command_line/diagnostics.h"

namespace graphrun::cli {

// The words that follow a verb.
enum class Words { none, model, model_or_none, model_and_data, data, onnx, folders, tables, shell, verb };

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

// Every verb; each is described at the end of its own file.
#define GRAPHRUN_VERBS(X) \
  X(train)                \
  X(eval)                 \
  X(predict)              \
  X(init)                 \
  X(plan)                 \
  X(verify)               \
  X(bench)                \
  X(show)                 \
  X(check)                \
  X(sweep)                \
  X(runs)                 \
  X(replay) X(report) X(studio) X(plot) X(export_c) X(export_onnx) X(import_onnx) X(devices) X(completion) X(help)
#define GRAPHRUN_VERB(name) extern const Verb name##_verb;
GRAPHRUN_VERBS(GRAPHRUN_VERB)
#undef GRAPHRUN_VERB

}  // namespace graphrun::cli
