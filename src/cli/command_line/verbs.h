// verbs.h: the commands of the command line, one per file.
// Contract: a verb writes results to stdout and all messages through Diagnostics; it returns the exit code and throws
// Error for errors that the user can fix. To add one: write its file, which ends with its Verb, add it to
// GRAPHRUN_VERBS and to a group in help.cpp; flags are rows of flags.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line/arguments.h"
#include "cli/command_line/diagnostics.h"

namespace graphrun::cli {

// The words that follow a verb.
enum class Positionals { none, model, model_or_none, model_and_data, data, onnx, folder, folders, tables, shell, verb };

struct Verb {
  std::string_view name, alias;  // alias: a second name; may be empty
  Positionals positionals;
  std::string_view summary;   // one line of --help
  std::string_view about;     // paragraphs of its own help: effect and output
  std::string_view examples;  // examples of its own help, one command per line
  int (*run)(const Arguments& arguments, Diagnostics& diagnostics);
};

std::span<const Verb> verbs();                 // the first is the default
const Verb* find_verb(std::string_view name);  // matches name or alias; null if there is none
std::vector<std::string> verb_names();         // with aliases

// Every verb; its Verb is at the end of its own file.
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
