#include "cli/command_line/man.h"

#include <fmt/format.h>

#include "cli/command_line/flags.h"
#include "cli/command_line/help.h"
#include "graphrun/show.h"

namespace graphrun::cli {
namespace {

struct Path {
  std::string_view name, text;
};
constexpr Path kFiles[] = {
    {"model.json", "a model. Every key: docs/reference/model-format.md"},
    {"*.npz, *.safetensors", "weights, as NumPy reads them, or with their model inside"},
    {"runs/NAME/", "a stored run: run.json, model.json, log.csv, weights.npz, result.json"},
    {"$XDG_CACHE_HOME/graphrun/kernels, ~/.cache/graphrun/kernels", "kernels that were compiled for GPUs"},
};

// As text, whatever it begins with or contains; a minus that may be copied.
std::string roff_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

// Each line by itself, so that none begins with a roff control character.
std::string roff_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += (end == 0 ? std::string(".PP") : roff_text(text.substr(0, end))) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string roff_section(std::string_view name) {
  return fmt::format(".SH {}\n", name);
}

std::string roff_item(std::string_view name, std::string_view value, std::string_view text) {
  const std::string argument = value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff_text(value));
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}", roff_text(name), argument, roff_lines(text));
}

std::string as_typed(std::string_view lines) {
  return fmt::format(".PP\n.nf\n{}.fi\n", roff_lines(lines));
}

std::string of_verbs() {
  std::string text = roff_section("VERBS");
  for (const Verb& verb : verbs()) {
    text += fmt::format(".SS {}\n", roff_text(verb.name));
    text += fmt::format("\\fBgraphrun {}\\fR [\\fIFLAGS\\fR]{}\n.PP\n", roff_text(verb.name),
                        roff_text(words_text(verb.words)));
    const std::string also = verb.alias.empty() ? "" : fmt::format(" (also: {})", verb.alias);
    text += roff_lines(fmt::format("{}{}.", verb.summary, also)) + ".PP\n" + roff_lines(verb.about);
    text += as_typed(verb.examples);
  }
  return text;
}

std::string of_flags() {
  std::string text = roff_section("FLAGS");
  text += roff_lines("Flags stand anywhere; --flag=value and --flag value are the same; -- ends them.");
  std::string_view group;
  for (const Flag& flag : flags()) {
    if (flag.group != group) text += fmt::format(".SS {}\n", roff_text(group = flag.group));
    std::string name = flag.letter.empty() ? std::string(flag.name) : fmt::format("{}, {}", flag.name, flag.letter);
    if (!flag.bare.empty()) name += fmt::format("[={}]", flag.value);
    const std::string goes_with = flag.verbs.empty() ? "" : fmt::format("\n({})", flag.verbs);
    text += roff_item(name, flag.bare.empty() ? flag.value : "", std::string(flag.help) + goes_with);
  }
  return text;
}

std::string roff_items(std::string_view title, const std::vector<Told>& rows) {
  std::string text = roff_section(title);
  for (const auto& [name, meaning] : rows) text += roff_item(name, "", meaning);
  return text;
}

}  // namespace

std::string manual() {
  std::string text = fmt::format(".TH GRAPHRUN 1 \"\" \"graphrun {}\" \"User Commands\"\n", GRAPHRUN_VERSION);
  text += roff_section("NAME") + roff_lines("graphrun - trains a computation graph that is described in a JSON file");
  text += roff_section("SYNOPSIS") + "\\fBgraphrun\\fR [\\fIVERB\\fR] [\\fIFLAGS\\fR] \\fIMODEL.json\\fR\n";
  text +=
      roff_section("DESCRIPTION") +
      roff_lines(fmt::format("Without a verb graphrun trains. Results go to stdout, all else to stderr.\n\n"
                             "graphrun VERB --help tells of one verb, and graphrun help TOPIC what a model file may "
                             "say:\n{}, and each name in these lists.",
                             fmt::join(help_kinds(), ", ")));
  text += of_verbs() + of_flags();
  text += roff_items("ENVIRONMENT", environment(nullptr)) + roff_items("EXIT STATUS", exit_codes());
  text += roff_section("FILES");
  for (const Path& path : kFiles) text += roff_item(path.name, "", path.text);
  text += roff_section("EXAMPLES");
  for (const auto& [command, meaning] : examples()) text += roff_item(command, "", meaning);
  return text;
}

}  // namespace graphrun::cli
