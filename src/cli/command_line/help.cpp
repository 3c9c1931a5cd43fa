#include "cli/command_line/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "base/text.h"
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

// Groups that follow a verb's own; the model's flags are own flags of train.
constexpr std::string_view kSharedGroups = "Model Output Execution General";

// Flags in the help of a verb, of the groups that the list names a flag of. A topic of kGroupTopics lists all of a
// group.
constexpr std::pair<std::string_view, std::string_view> kShortLists[] = {
    {"train", "--log --tensorboard --watch --profile --executor --target --threads --math"},
    {"sweep", "--executor --target --threads --math"},
    {"eval predict", "--set --batch --max-memory --weights --data-dir --max-input --executor --threads --math"},
    {"plan show", "--executor --target --math"},
    {"check", "--set --epochs --batch --max-memory --executor --target --math"},
    {"studio", "--executor --threads"}};
constexpr std::string_view kDetailed = "train eval plan verify bench";  // verbs to which --verbose makes a difference
// Topic, its group of flags (empty: environment variables), and their purpose.
constexpr std::array<std::string_view, 3> kGroupTopics[] = {
    {"execution", "Execution", "flags that select and tune the executor"},
    {"logs", "Logs", "flags that record, watch or profile a training run"},
    {"environment", "", "environment variables that set defaults"}};

std::string row(std::string_view name, std::string_view text, std::size_t width = 24) {
  return fmt::format("  {:<{}}{}\n", name, width, text);
}

std::string rows(std::string_view title, const std::vector<HelpRow>& table, std::size_t width) {
  std::string text = fmt::format("\n{}:\n", title);
  for (const auto& [name, meaning] : table) text += row(name, meaning, width);
  return text;
}

std::string flag_row(const Flag& flag, std::string_view verb) {
  return row(flag_name(flag) + (flag.value.empty() || !flag.bare.empty() ? "" : fmt::format(" {}", flag.value)),
             help_of(flag, verb));
}

std::string group_text(std::string_view group, std::string_view verb, std::string_view only = {}) {
  std::string text;
  for (const Flag& flag : flags()) {
    if (flag.group != group || !belongs(flag, verb)) continue;
    if (flag.name == "--verbose" && !verb.empty() && !has_word(kDetailed, verb)) continue;
    if (only.empty() || has_word(only, flag.name)) text += flag_row(flag, verb);
  }
  for (const auto& [topic, of, purpose] : kGroupTopics)
    if (group == of && !only.empty())
      text += row(fmt::format("graphrun help {}", topic), "list all " + std::string(purpose));
  return text.empty() ? "" : fmt::format("\n{}:\n{}", group, text);
}

// Whether a short list names flags of the group.
bool is_listed(std::string_view group, std::string_view list) {
  return std::ranges::any_of(flags(),
                             [&](const Flag& flag) { return flag.group == group && has_word(list, flag.name); });
}

std::string flags_text(std::string_view verb) {
  std::string own, shared;
  std::string_view only, group;
  for (const auto& [verbs, list] : kShortLists)
    if (has_word(verbs, verb)) only = list;
  for (const Flag& flag : flags()) {
    if (flag.group == group) continue;
    group = flag.group;
    const bool is_shared = has_word(kSharedGroups, group) && (verb != "train" || group != "Model");
    (is_shared ? shared : own) += group_text(group, verb, is_listed(group, only) ? only : "");
  }
  return own + shared;
}

std::string environment_text() {
  return rows("Environment (flags override variables; GRAPHRUN_DATA adds a folder to --data-dir)", environment(), 24);
}

std::string indented(std::string_view lines) {
  std::string text;
  for (const std::string_view line : lines_of(lines)) text += fmt::format("  {}\n", line);
  return text;
}

}  // namespace

std::vector<HelpRow> exit_codes() {
  return {{"0", "success"},
          {"1", "the run failed: a non-finite loss, or an error while writing results or files"},
          {"2", "invalid usage, model file, data or weights, or an output path that is not writable"},
          {"3", "a requested check or limit failed, such as verify or --max-memory"},
          {"4", "a device, its library or its memory is not available"},
          {"130", "interrupted, for example by Ctrl-C; a training run still prints its results"}};
}

std::vector<HelpRow> environment() {
  std::vector<HelpRow> rows;
  for (const Flag& flag : flags()) {
    std::string text =
        fmt::format("default of {}{}", flag.name, flag.name == "--executor" ? " (a name, not a path)" : "");
    if (flag.name == "--data-dir") text = "folder to search for data files, after --data-dir";
    if (!flag.variable.empty()) rows.push_back({std::string(flag.variable), text});
  }
  rows.push_back({"CUDA_VISIBLE_DEVICES", "GPUs that graphrun may use; the first is cuda:0"});
  rows.push_back({"GRAPHRUN_KERNEL_CACHE", "cache folder for compiled GPU kernels, or off"});
  rows.push_back({"GRAPHRUN_GPU_COSTS", "file with cost factors of GPUs for the planner, from bench/calibrate"});
  rows.push_back({"GRAPHRUN_RENDEZVOUS", "HOST:PORT of rank 0, for the ranks of a launcher"});
  rows.push_back({"GRAPHRUN_JOB_SECRET", "secret that the ranks of several machines prove to each other"});
  rows.push_back({"GRAPHRUN_TRANSPORT", "tcp: ranks of one host do not share memory"});
  rows.push_back({"NO_COLOR", "disables colour if set"});
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
          {"graphrun plan model.json --executor=cuda --target=h200", "plan for an H200 (no GPU needed)"}};
}

std::string_view positionals_text(Positionals positionals) {
  static constexpr std::string_view kTexts[] = {"",
                                                " MODEL.json",
                                                " [MODEL.json]",
                                                " MODEL.json DATA",
                                                " DATA.csv --label COLUMN",
                                                " NET.onnx -o MODEL.safetensors",
                                                " FOLDER",
                                                " [FOLDER...]",
                                                " RUN.csv...|MODEL.json|RUN-FOLDER",
                                                " bash|zsh|fish",
                                                " [COMMAND|TOPIC]"};
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
  for (const std::string_view name : kCommonFlags) text += flag_row(*find_flag(name), "train");
  text += "\nExamples:\n";
  for (const auto& [command, meaning] : examples()) text += row(command, meaning, 56);
  return text + "See also: graphrun COMMAND --help (its flags), graphrun help (topics), graphrun completion SHELL\n";
}

std::string help_text(const Verb& verb) {
  const std::string also = verb.alias.empty() ? "" : fmt::format(" (also: {})", verb.alias);
  const std::string_view other = verb.name == "show"   ? "|--weights FILE [NAME...]"
                                 : verb.name == "plan" ? "|--buffers FILE"
                                                       : "";
  return fmt::format("graphrun {}{}: {}\n\nUsage: graphrun {} [FLAGS]{}{}\n\n{}\n\nExamples:\n{}", verb.name, also,
                     verb.summary, verb.name, positionals_text(verb.positionals), other, verb.about,
                     indented(verb.examples)) +
         flags_text(verb.name) + "\nSee also: graphrun help (lists topics, environment variables and exit codes)\n";
}

std::string version_text() {
  std::vector<std::string> names;
  for (const Target& target : targets()) names.emplace_back(target.name);
  static const std::string isa = find_executor("cpu")->devices().devices.at(0).capability;  // reads /proc/cpuinfo
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
      "Topics (you can also name any entry of these lists):\n";
  for (const std::string& kind : help_kinds()) {
    std::vector<std::string> names = help_topics(kind);
    if (names.size() > kListed) names.resize(kListed + 1), names.back() = "...";
    text += row(kind, fmt::format("{}", fmt::join(names, ", ")));
  }
  text += row("model, data, training", "keys of a model file, of its section data and of its section train");
  for (const auto& [topic, group, purpose] : kGroupTopics) text += row(topic, purpose);
  return text +
         "\nFlags may appear anywhere; -- ends them. Write --flag=value or --flag value.\n"
         "A file after --resume needs the '=': --resume=FILE.\n" +
         environment_text() + rows("Exit codes", exit_codes(), 5);
}

int run_help(const Arguments& arguments, Diagnostics&) {
  const Verb* verb = find_verb(arguments.word);
  write_results(arguments.man            ? manual()
                : verb != nullptr        ? help_text(*verb)
                : arguments.help         ? help_text()
                : arguments.word.empty() ? topics_text()
                                         : topic_text(arguments.word));
  return kDone;
}

}  // namespace

std::vector<std::string> topics() {
  std::vector<std::string> names = help_topics();
  for (const auto& entry : kGroupTopics) names.emplace_back(entry[0]);
  return names;
}

std::string topic_text(const std::string& topic) {
  for (const auto& [name, group, purpose] : kGroupTopics)
    if (topic == name)
      return fmt::format("{}: {}\n{}", name, purpose, group.empty() ? environment_text() : group_text(group, "train"));
  return help_topic(topic);
}

const Verb help_verb = {
    "help",
    "",
    Positionals::verb,
    "explain a command, or a name in a model file",
    R"(Prints the help of a command (the same as graphrun COMMAND --help) or of a topic. Topics are keys and
sections of a model file (patience, training), names in it (adam, dense) and their lists (optimizers), and the
lists environment, execution and logs. Without an argument, help lists the topics, the environment variables
and the exit codes. --man prints all help as the man page graphrun(1).)",
    R"(graphrun help verify
graphrun help training
graphrun help adam
graphrun help --man > graphrun.1)",
    run_help};

}  // namespace graphrun::cli
