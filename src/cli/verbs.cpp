#include "verbs.h"

#include <array>

namespace graphrun::cli {

std::span<const Verb> verbs() {
  static constexpr std::array<Verb, 3> table = {{
      {"train", "train the model and evaluate it on its splits (the default)", run_train},
      {"plan", "show the memory plan and the steps; needs no device", run_plan},
      {"verify", "run two executors step by step and compare every value", run_verify},
  }};
  return table;
}

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : verbs()) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

}  // namespace graphrun::cli
