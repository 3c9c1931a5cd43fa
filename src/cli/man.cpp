#include "man.h"

#include <fmt/format.h>

#include "flags.h"
#include "graphrun/show.h"
#include "help.h"

namespace graphrun::cli {
namespace {

struct Path {
  std::string_view name, text;
};
constexpr Path kFiles[] = {
    {"model.json", "a model. Every key: docs/model-format.md"},
    {"*.npz, *.safetensors", "weights, as NumPy reads them, or with their model inside"},
    {"runs/NAME/", "a stored run: run.json, model.json, log.csv, weights.npz, result.json"},
    {"$XDG_CACHE_HOME/graphrun/kernels, ~/.cache/graphrun/kernels", "kernels that were compiled for GPUs"},
};

// As text, whatever it begins with or contains; a minus that may be copied.
std::string escaped(std::string_view text) {
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
std::string lines_of(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += (end == 0 ? std::string(".PP") : escaped(text.substr(0, end))) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string section(std::string_view name) {
  return fmt::format(".SH {}\n", name);
}

std::string item(std::string_view name, std::string_view value, std::string_view text) {
  const std::string argument = value.empty() ? "" : fmt::format(" \\fI{}\\fR", escaped(value));
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}", escaped(name), argument, lines_of(text));
}

std::string as_typed(std::string_view lines) {
  return fmt::format(".PP\n.nf\n{}.fi\n", lines_of(lines));
}

std::string of_verbs() {
  std::string text = section("VERBS");
  for (const Verb& verb : verbs()) {
    text += fmt::format(".SS {}\n", escaped(verb.name));
    text += fmt::format("\\fBgraphrun {}\\fR [\\fIFLAGS\\fR]{}\n.PP\n", escaped(verb.name),
                        escaped(words_text(verb.words)));
    const std::string also = verb.alias.empty() ? "" : fmt::format(" (also: {})", verb.alias);
    text += lines_of(fmt::format("{}{}.", verb.summary, also)) + ".PP\n" + lines_of(verb.about);
    text += as_typed(verb.examples);
  }
  return text;
}

std::string of_flags() {
  std::string text = section("FLAGS");
  text += lines_of("Flags stand anywhere; --flag=value and --flag value are the same; -- ends them.");
  std::string_view group;
  for (const Flag& flag : flags()) {
    if (flag.group != group) text += fmt::format(".SS {}\n", escaped(group = flag.group));
    const std::string name =
        flag.letter.empty() ? std::string(flag.name) : fmt::format("{}, {}", flag.name, flag.letter);
    const std::string goes_with = flag.verbs.empty() ? "" : fmt::format("\n({})", flag.verbs);
    text += item(name, flag.value, std::string(flag.help) + goes_with);
  }
  return text;
}

std::string items(std::string_view title, const std::vector<Told>& rows) {
  std::string text = section(title);
  for (const auto& [name, meaning] : rows) text += item(name, "", meaning);
  return text;
}

}  // namespace

std::string manual() {
  std::string text = fmt::format(".TH GRAPHRUN 1 \"\" \"graphrun {}\" \"User Commands\"\n", GRAPHRUN_VERSION);
  text += section("NAME") + lines_of("graphrun - trains a computation graph that is described in a JSON file");
  text += section("SYNOPSIS") + "\\fBgraphrun\\fR [\\fIVERB\\fR] [\\fIFLAGS\\fR] \\fIMODEL.json\\fR\n";
  text += section("DESCRIPTION") +
          lines_of(fmt::format("Without a verb graphrun trains. Results go to stdout, all else to stderr.\n\n"
                               "graphrun VERB --help tells of one verb, and graphrun help TOPIC what a model file may "
                               "say:\n{}, and each name in these lists.",
                               fmt::join(help_kinds(), ", ")));
  text += of_verbs() + of_flags();
  text += items("ENVIRONMENT", environment(nullptr)) + items("EXIT STATUS", exit_codes());
  text += section("FILES");
  for (const Path& path : kFiles) text += item(path.name, "", path.text);
  text += section("EXAMPLES");
  for (const auto& [command, meaning] : examples()) text += item(command, "", meaning);
  return text;
}

}  // namespace graphrun::cli
