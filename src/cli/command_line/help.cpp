#include "cli/command_line/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "cli/command_line/flags.h"
#include "cli/command_line/man.h"
#include "cli/terminal/terminal.h"
#include "graphrun/executor.h"
#include "graphrun/show.h"
#include "graphrun/target.h"

namespace graphrun::cli {
namespace {

#if defined(__x86_64__)
constexpr std::string_view kInstructionSets = "plain avx2 avx512";
#else
constexpr std::string_view kInstructionSets = "plain";
#endif

// `completion` and `help` are listed below the groups.
constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
    {"Train", "init train eval predict sweep studio"},
    {"Inspect", "show check plan verify bench plot devices"},
    {"Runs", "runs replay report"},
    {"Export", "export-c export-onnx import-onnx"}};
constexpr std::string_view kCommonFlags[] = {"--executor", "--set", "--weights", "--json"};

std::string row(std::string_view name, std::string_view text, std::size_t width = 24) {
  return fmt::format("  {:<{}}{}\n", name, width, text);
}

std::string rows(std::string_view title, const std::vector<HelpRow>& table, std::size_t width) {
  std::string text = fmt::format("\n{}:\n", title);
  for (const auto& [name, meaning] : table) text += row(name, meaning, width);
  return text;
}

std::string flag_row(const Flag& flag) {
  return row(flag_name(flag) + (flag.value.empty() || !flag.bare.empty() ? "" : fmt::format(" {}", flag.value)),
             flag.help);
}

std::string flags_text(const Verb& verb) {
  std::string text;
  std::string_view group;
  for (const Flag& flag : flags()) {
    if (!belongs(flag, verb.name)) continue;
    if (flag.group != group) text += fmt::format("\n{}:\n", group = flag.group);
    text += flag_row(flag);
  }
  return text;
}

std::string environment_text(const Verb* verb) {
  const std::vector<HelpRow> variables = environment(verb);
  return variables.empty() ? "" : rows("Environment (a flag overrides its variable)", variables, 24);
}

std::string indented(std::string_view lines) {
  std::string text;
  for (const std::string_view line : lines_of(lines)) text += fmt::format("  {}\n", line);
  return text;
}

}  // namespace

std::vector<HelpRow> exit_codes() {
  return {{"0", "success"},
          {"1", "the run failed: a non-finite loss, or results or files that could not be written"},
          {"2", "invalid usage, model file or data file"},
          {"3", "a requested check failed"},
          {"4", "a device, its library or its memory is not available"},
          {"130", "interrupted; the results so far are printed"}};
}

std::vector<HelpRow> environment(const Verb* verb) {
  std::vector<HelpRow> rows;
  for (const Flag& flag : flags()) {
    if (flag.variable.empty() || (verb != nullptr && !belongs(flag, verb->name))) continue;
    rows.push_back({std::string(flag.variable), fmt::format("same as {}", flag.name)});
  }
  if (verb == nullptr || belongs(*find_flag("--executor"), verb->name)) {
    rows.push_back({"CUDA_VISIBLE_DEVICES", "GPUs to use; the first is cuda:0"});
    rows.push_back({"GRAPHRUN_KERNEL_CACHE", "cache folder of compiled GPU kernels, or off"});
  }
  if (verb == nullptr) rows.push_back({"NO_COLOR", "disables colour if set"});
  return rows;
}

std::string flag_name(const Flag& flag) {
  std::string name(flag.name);
  if (!flag.letter.empty()) name = fmt::format("{}, {}", flag.letter, flag.name);
  if (!flag.bare.empty()) name += fmt::format("[={}]", flag.value);
  return name;
}

std::vector<HelpRow> examples() {
  return {{"graphrun model.json --epochs=5 --set train.batch=32", "train with other settings"},
          {"graphrun plan model.json --executor=cuda --target=h200", "plan for a GPU without one"}};
}

std::string_view positionals_text(Positionals positionals) {
  static constexpr std::string_view kTexts[] = {
      "",          " MODEL.json", " [MODEL.json]", " MODEL.json DATA", " DATA.csv",
      " NET.onnx", " FOLDER...",  " RUN.csv...",   " bash|zsh|fish",   " [COMMAND|TOPIC]"};
  static_assert(std::size(kTexts) == static_cast<std::size_t>(Positionals::verb) + 1);
  return kTexts[static_cast<std::size_t>(positionals)];
}

std::string help_text() {
  std::string text =
      "Train and inspect computation graphs that are described in JSON files.\n"
      "Usage: graphrun [COMMAND] [FLAGS] MODEL.json   (default command: train)\n";
  for (const auto& [title, list] : kGroups) {
    text += fmt::format("\n{}:\n", title);
    std::istringstream names{std::string(list)};
    for (std::string name; names >> name;) text += row(name, find_verb(name)->summary);
  }
  text += "\nCommon flags:\n";
  for (const std::string_view name : kCommonFlags) text += flag_row(*find_flag(name));
  text += "\nExamples:\n";
  for (const auto& [command, meaning] : examples()) text += row(command, meaning, 56);
  return text + "See also: graphrun COMMAND --help (all flags), graphrun help (topics), graphrun completion SHELL\n";
}

std::string help_text(const Verb& verb) {
  const std::string also = verb.alias.empty() ? "" : fmt::format(" (also: {})", verb.alias);
  return fmt::format("graphrun {}{}: {}\n\nUsage: graphrun {} [FLAGS]{}\n\n{}\n\nExamples:\n{}", verb.name, also,
                     verb.summary, verb.name, positionals_text(verb.positionals), verb.about, indented(verb.examples)) +
         flags_text(verb) + environment_text(&verb) + "\nSee also: graphrun help (topics, environment, exit codes)\n";
}

std::string version_text() {
  std::vector<std::string> names;
  for (const Target& target : targets()) names.emplace_back(target.name);
  std::string isa;
  for (const Device& device : find_executor("cpu")->devices().devices) isa = device.capability;
  return fmt::format(
      "graphrun {}\nbuild: C++{}, compiler {}, {}\nCUDA: {}\ninstruction set here: {} (built: {})\nexecutors: {}\n"
      "targets: {}\n",
      GRAPHRUN_VERSION, __cplusplus / 100 % 100, __VERSION__, GRAPHRUN_BUILD_TYPE, GRAPHRUN_CUDA_BUILD, isa,
      kInstructionSets, fmt::join(executor_names(), " "), fmt::join(names, " "));
}

namespace {

// Topics with their first names, and everything that holds for all commands.
std::string topics_text() {
  constexpr std::size_t kListed = 6;
  std::string text =
      "Usage: graphrun help [COMMAND|TOPIC], for instance graphrun help adam; --man prints the man page\n\n"
      "Topics (names in a model file):\n";
  for (const std::string& kind : help_kinds()) {
    std::vector<std::string> names = help_topics(kind);
    if (names.size() > kListed) names.resize(kListed + 1), names.back() = "...";
    text += row(kind, fmt::format("{}", fmt::join(names, ", ")));
  }
  return text +
         "\nFlags may precede or follow other words; --flag=value and --flag value are equivalent; -- ends flags.\n" +
         environment_text(nullptr) + rows("Exit codes", exit_codes(), 5);
}

int run_help(const Arguments& arguments, Diagnostics&) {
  const Verb* verb = find_verb(arguments.word);
  write_results(arguments.man            ? manual()
                : verb != nullptr        ? help_text(*verb)
                : arguments.help         ? help_text()
                : arguments.word.empty() ? topics_text()
                                         : help_topic(arguments.word));
  return kDone;
}

}  // namespace

const Verb help_verb = {
    "help",
    "",
    Positionals::verb,
    "print the help of a command, or of a name in a model file",
    R"(Prints the help of a command (graphrun help plan is graphrun plan --help), or of a topic. A topic is a name in
a model file, such as adam or dense, or a list of names, such as optimizers. Without a word it lists the
topics. --man prints all commands and flags as the man page graphrun(1).)",
    R"(graphrun help verify
graphrun help optimizers
graphrun help adam
graphrun help --man > graphrun.1)",
    run_help};

}  // namespace graphrun::cli
