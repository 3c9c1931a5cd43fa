#include "cli/command_line/verbs.h"

namespace graphrun::cli {

std::span<const Verb> verbs() {
#define GRAPHRUN_VERB(name) name##_verb,
  static const Verb table[] = {GRAPHRUN_VERBS(GRAPHRUN_VERB)};
#undef GRAPHRUN_VERB
  return table;
}

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : verbs()) {
    if (verb.name == name || (!verb.alias.empty() && verb.alias == name)) return &verb;
  }
  return nullptr;
}

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) {
    names.emplace_back(verb.name);
    if (!verb.alias.empty()) names.emplace_back(verb.alias);
  }
  return names;
}

}  // namespace graphrun::cli
