#include "cli/command_line/help.h"

#include <fmt/format.h>

#include <algorithm>

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

std::string describe(const Flag& flag, bool with_verbs) {
  std::string name = flag.letter.empty() ? std::string(flag.name) : fmt::format("{}, {}", flag.name, flag.letter);
  if (!flag.bare.empty())
    name += fmt::format("[={}]", flag.value);
  else if (!flag.value.empty())
    name += fmt::format(" {}", flag.value);
  // A flag of most verbs goes without them.
  const bool of_few = with_verbs && !flag.verbs.empty() && flag.verbs.find(' ') == std::string_view::npos;
  return fmt::format("  {:<24}{}{}\n", name, of_few ? fmt::format("{}: ", flag.verbs) : "", flag.help);
}

// The flags under their headings; those of one verb when it is given.
std::string flags_text(const Verb* verb) {
  std::string text;
  std::string_view group;
  for (const Flag& flag : flags()) {
    if (verb != nullptr && !belongs(flag, verb->name)) continue;
    if (flag.group != group) text += fmt::format("\n{}:\n", group = flag.group);
    text += describe(flag, verb == nullptr);
  }
  return text;
}

std::string told_text(std::string_view title, const std::vector<Told>& rows, std::size_t width) {
  std::string text = fmt::format("\n{}:\n", title);
  for (const auto& [name, meaning] : rows) text += fmt::format("  {:<{}}{}\n", name, width, meaning);
  return text;
}

std::string environment_text(const Verb* verb) {
  return told_text("Environment (a flag wins over its variable)", environment(verb), 24);
}

std::string exit_codes_text() {
  return told_text("Exit codes", exit_codes(), 5);
}

// A command too wide for its column has what it does below itself.
std::string examples_text() {
  constexpr std::size_t kWidth = 54;
  std::string text = "\nExamples:\n";
  for (const auto& [command, meaning] : examples()) {
    text += "  " + command;
    if (!meaning.empty())
      text += command.size() < kWidth ? std::string(kWidth - command.size(), ' ') : "\n" + std::string(kWidth + 2, ' ');
    text += meaning + "\n";
  }
  return text;
}

std::string indented(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    text += fmt::format("  {}\n", lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

}  // namespace

std::vector<Told> exit_codes() {
  return {{"0", "done"},
          {"1", "the run failed: a loss that is not finite, results or files that could not be written"},
          {"2", "bad usage, model file or data file"},
          {"3", "a check that was asked for failed"},
          {"4", "the device or its library is not available, or out of memory"},
          {"130", "interrupted; the results so far are printed"}};
}

std::vector<Told> environment(const Verb* verb) {
  std::vector<Told> rows;
  for (const Flag& flag : flags()) {
    if (flag.variable.empty() || (verb != nullptr && !belongs(flag, verb->name))) continue;
    rows.push_back({std::string(flag.variable), fmt::format("same as {}", flag.name)});
  }
  rows.push_back({"CUDA_VISIBLE_DEVICES", "which GPUs there are, and which of them is cuda:0"});
  rows.push_back({"GRAPHRUN_KERNEL_CACHE", "the folder of kernels compiled for GPUs, or off"});
  rows.push_back({"NO_COLOR", "when set, no colour on a terminal"});
  return rows;
}

std::span<const Told> examples() {
  static const Told kTable[] = {
      {"graphrun model.json", "train on the CPU, the results on stdout"},
      {"graphrun --executor=cuda model.json", "the same on a GPU"},
      {"graphrun model.json --epochs=5 --set train.optimizer.sgd.lr=0.1", "with other settings"},
      {"graphrun model.json --json --quiet > result.json", "one JSON object and nothing else"},
      {"graphrun plan model.json --executor=cuda --target=h200", "the memory plan of a GPU, without one"},
      {"graphrun verify model.json --executor=cuda", "every step on a GPU against the reference"},
  };
  return kTable;
}

std::string_view words_text(Words words) {
  static constexpr std::string_view kTexts[] = {
      "",          " MODEL.json", " [MODEL.json]", " MODEL.json DATA", " DATA.csv",
      " NET.onnx", " FOLDER...",  " RUN.csv...",   " bash|zsh|fish",   " [VERB|TOPIC]"};
  static_assert(std::size(kTexts) == static_cast<std::size_t>(Words::verb) + 1);
  return kTexts[static_cast<std::size_t>(words)];
}

std::string help_text() {
  std::string text =
      "Trains a computation graph that is described in a JSON file.\n\n"
      "Usage: graphrun [VERB] [FLAGS] MODEL.json\n\nVerbs:\n";
  for (const Verb& verb : verbs()) {
    text += fmt::format("  {:<24}{}{}\n", verb.name, verb.summary,
                        verb.alias.empty() ? "" : fmt::format(" (also: {})", verb.alias));
  }
  text += "\ngraphrun VERB --help tells more of one verb, and graphrun help TOPIC what a model file may say:\n" +
          fmt::format("{}, and each by its name.\n", fmt::join(help_kinds(), ", ")) +
          "Flags stand anywhere; --flag=value and --flag value are the\n"
          "same; -- ends them.\n";
  return text + flags_text(nullptr) + environment_text(nullptr) + examples_text() + exit_codes_text();
}

std::string help_text(const Verb& verb) {
  const std::string also = verb.alias.empty() ? "" : fmt::format(" (also: {})", verb.alias);
  return fmt::format("graphrun {}{}: {}\n\nUsage: graphrun {} [FLAGS]{}\n\n{}\n\nExamples:\n{}", verb.name, also,
                     verb.summary, verb.name, words_text(verb.words), verb.about, indented(verb.examples)) +
         flags_text(&verb) + environment_text(&verb) + exit_codes_text();
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

int run_help(const Arguments& arguments, Diagnostics&) {
  const Verb* verb = find_verb(arguments.word);
  if (arguments.man) {
    write_results(manual());
    return kDone;
  }
  write_results(arguments.word.empty() ? help_text() : verb ? help_text(*verb) : help_topic(arguments.word));
  return kDone;
}

}  // namespace

const Verb help_verb = {"help",
                        "",
                        Words::verb,
                        "print this, or the help of one verb or topic",
                        R"(The same as --help, and with a verb as VERB --help. A topic is a name that a model file may
use, as adam or dense, or a list of such names, as optimizers; graphrun help names the lists. --man prints all of it
as the page graphrun(1), for man.)",
                        R"(graphrun help verify
graphrun help optimizers
graphrun help adam
graphrun help --man > graphrun.1)",
                        run_help};

}  // namespace graphrun::cli
