#include "cli/command_line/man.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/command_line/flags.h"
#include "cli/command_line/help.h"
#include "graphrun/show.h"

namespace graphrun::cli {
namespace {

std::vector<HelpRow> files() {
  return {
      {"model.json", "model; docs/reference/model-format.md lists every key"},
      {"*.npz, *.safetensors", "weights in NumPy's format, or with their model"},
      {"runs/NAME/", "a stored run: run.json, model.json, log.csv, weights.npz, result.json"},
      {"$XDG_CACHE_HOME/graphrun/kernels, ~/.cache/graphrun/kernels", "compiled GPU kernels"},
  };
}

// Escapes text for roff; a minus stays a minus when copied.
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

// Escapes line by line, so that none begins with a roff control character.
std::string roff_lines(std::string_view text) {
  std::string out;
  for (const std::string_view line : lines_of(text)) out += (line.empty() ? ".PP" : roff_text(line)) + "\n";
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

std::string verbs_section() {
  std::string text = roff_section("COMMANDS");
  for (const Verb& verb : verbs()) {
    text += fmt::format(".SS {}\n", roff_text(verb.name));
    text += fmt::format("\\fBgraphrun {}\\fR [\\fIFLAGS\\fR]{}\n.PP\n", roff_text(verb.name),
                        roff_text(positionals_text(verb.positionals)));
    const std::string also = verb.alias.empty() ? "" : fmt::format(" (also: {})", verb.alias);
    text += roff_lines(fmt::format("{}{}.", verb.summary, also)) + ".PP\n" + roff_lines(verb.about);
    text += as_typed(verb.examples);
  }
  return text;
}

std::string flags_section() {
  std::string text = roff_section("FLAGS");
  text += roff_lines(
      "Flags may appear anywhere; -- ends them. Write --flag=value or --flag value. A file after --resume "
      "needs the '=': --resume=FILE.");
  std::string_view group;
  for (const Flag& flag : flags()) {
    if (flag.group != group) text += fmt::format(".SS {}\n", roff_text(group = flag.group));
    const std::string goes_with = flag.verbs.empty() ? "" : fmt::format("\n({})", flag.verbs);
    text += roff_item(flag_name(flag), flag.bare.empty() ? flag.value : "", help_of(flag) + goes_with);
  }
  return text;
}

std::string roff_items(std::string_view title, const std::vector<HelpRow>& rows) {
  std::string text = roff_section(title);
  for (const auto& [name, meaning] : rows) text += roff_item(name, "", meaning);
  return text;
}

}  // namespace

std::string manual() {
  std::string text = fmt::format(".TH GRAPHRUN 1 \"\" \"graphrun {}\" \"User Commands\"\n", GRAPHRUN_VERSION);
  text += roff_section("NAME") +
          roff_lines("graphrun - train and inspect computation graphs that are described in JSON files");
  text += roff_section("SYNOPSIS") + "\\fBgraphrun\\fR [\\fICOMMAND\\fR] [\\fIFLAGS\\fR] \\fIMODEL.json\\fR\n";
  text +=
      roff_section("DESCRIPTION") +
      roff_lines(fmt::format("The default command is train. Results go to stdout, all else to stderr.\n\n"
                             "graphrun COMMAND --help explains a command, and graphrun help TOPIC the names of a model "
                             "file:\n{}, and each name in these lists.",
                             fmt::join(help_kinds(), ", ")));
  text += verbs_section() + flags_section();
  text += roff_items("ENVIRONMENT", environment()) + roff_items("EXIT STATUS", exit_codes());
  return text + roff_items("FILES", files()) + roff_items("EXAMPLES", examples());
}

}  // namespace graphrun::cli
