// completion.cpp: the verb `completion`: a script for bash or zsh, made from the tables of verbs and flags.
// Both scripts ask the same questions: which verb is on the line, and whether the word before takes a value.
#include <fmt/format.h>

#include <algorithm>

#include "flags.h"
#include "graphrun/executor.h"
#include "graphrun/show.h"
#include "graphrun/target.h"
#include "terminal.h"
#include "verbs.h"

namespace graphrun::cli {
namespace {

std::string words_of(Completes what) {
  switch (what) {
    case Completes::executors:
      return fmt::format("{}", fmt::join(executor_names(), " "));
    case Completes::targets: {
      std::string names;
      for (const Target& target : targets()) names += fmt::format("{}{}", names.empty() ? "" : " ", target.name);
      return names;
    }
    case Completes::formats:
      return "text json";
    case Completes::instruction_sets:
      return "plain avx2 avx512";
    case Completes::jit:
      return "prefer require off";
    case Completes::math:
      return "exact fast";
    case Completes::axes:
      return "x y xy";
    case Completes::nothing:
    case Completes::files:
    case Completes::folders:
      break;
  }
  return "";
}

std::string flags_of(std::string_view verb) {
  std::string names;
  for (const Flag& flag : flags()) {
    if (belongs(flag, verb)) names += fmt::format("{}{}", names.empty() ? "" : " ", flag.name);
  }
  return names;
}

// `case` branches that set `flags` by verb, in the words of both shells.
std::string verb_branches(std::string_view indent) {
  std::string text;
  for (const Verb& verb : verbs()) {
    const std::string names = verb.alias.empty() ? std::string(verb.name) : fmt::format("{}|{}", verb.name, verb.alias);
    text += fmt::format("{}{}) flags='{}' ;;\n", indent, names, flags_of(verb.name));
  }
  return text + fmt::format("{}*) flags='{}' ;;\n", indent, flags_of(verbs().front().name));
}

// Branches by the flag before the word: `line` is made of what its value may be.
template <class Line>
std::string value_branches(std::string_view indent, Line line) {
  std::string text;
  std::vector<std::string_view> seen;
  for (const Flag& flag : flags()) {
    if (flag.value.empty() || std::find(seen.begin(), seen.end(), flag.name) != seen.end()) continue;
    seen.push_back(flag.name);
    text += fmt::format("{}{}) {} ;;\n", indent, flag.name, line(flag));
  }
  return text;
}

std::string bash_script() {
  const auto reply = [](const Flag& flag) -> std::string {
    if (flag.completes == Completes::files) return "COMPREPLY=($(compgen -f -- \"$word\")); return";
    if (flag.completes == Completes::folders) return "COMPREPLY=($(compgen -d -- \"$word\")); return";
    return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\")); return", words_of(flag.completes));
  };
  return fmt::format(R"script(# bash completion for graphrun: source <(graphrun completion bash)
_graphrun() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} verb= flags i
  # bash cuts --flag=value into three words.
  if [[ $word == "=" ]]; then word=; elif [[ $before == "=" ]]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  case $before in
{}  esac
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case " {} " in *" ${{COMP_WORDS[i]}} "*) verb=${{COMP_WORDS[i]}}; break ;; esac
  done
  case $verb in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
  elif [[ $verb == completion ]]; then
    COMPREPLY=($(compgen -W 'bash zsh' -- "$word"))
  elif [[ $verb == help ]]; then
    COMPREPLY=($(compgen -W '{} {}' -- "$word"))
  else
    COMPREPLY=($(compgen -d -- "$word"))
    if [[ $verb == predict && $before == *.@(json|safetensors) ]]; then  # its data file
      COMPREPLY+=($(compgen -f -- "$word"))
    else
      COMPREPLY+=($(compgen -f -X '!*.json' -- "$word") $(compgen -f -X '!*.safetensors' -- "$word"))
    fi
    [[ -n $verb ]] || COMPREPLY+=($(compgen -W '{}' -- "$word"))
  fi
}}
complete -o filenames -F _graphrun graphrun
)script",
                     value_branches("    ", reply), fmt::join(verb_names(), " "), verb_branches("    "),
                     fmt::join(verb_names(), " "), fmt::join(help_topics(), " "), fmt::join(verb_names(), " "));
}

std::string zsh_script() {
  const auto reply = [](const Flag& flag) -> std::string {
    if (flag.completes == Completes::files) return "_files; return";
    if (flag.completes == Completes::folders) return "_files -/; return";
    return fmt::format("compadd -- {}; return", words_of(flag.completes));
  };
  return fmt::format(R"script(#compdef graphrun
# zsh completion for graphrun: graphrun completion zsh > _graphrun, in a folder of $fpath
_graphrun() {{
  local before=${{words[CURRENT-1]}} verb= flags word known
  known=({})
  if [[ $PREFIX == --*=* ]]; then
    before=${{PREFIX%%=*}}
    compset -P '*='
  fi
  case $before in
{}  esac
  for word in ${{words[2,CURRENT-1]}}; do
    if (( ${{known[(Ie)$word]}} )); then verb=$word; break; fi
  done
  case $verb in
{}  esac
  if [[ $PREFIX == -* ]]; then
    compadd -- ${{=flags}}
  elif [[ $verb == completion ]]; then
    compadd -- bash zsh
  elif [[ $verb == help ]]; then
    compadd -- $known {}
  else
    if [[ $verb == predict && $before == *.(json|safetensors) ]]; then
      _files -g '*.(csv|npy|npz)'
    else
      _files -g '*.(json|safetensors)'
    fi
    [[ -n $verb ]] || compadd -- $known
  fi
}}
if [[ $funcstack[1] == _graphrun ]]; then _graphrun "$@"; else compdef _graphrun graphrun; fi
)script",
                     fmt::join(verb_names(), " "), value_branches("    ", reply), verb_branches("    "),
                     fmt::join(help_topics(), " "));
}

int run_completion(const Arguments& arguments, Diagnostics&) {
  write_results(arguments.word == "bash" ? bash_script() : zsh_script());
  return kDone;
}

}  // namespace

const Verb completion_verb = {"completion",
                              "",
                              Words::shell,
                              "print a script that completes verbs and flags: bash or zsh",
                              R"(The script offers verbs, flags, their values and model files when Tab is pressed.)",
                              R"(source <(graphrun completion bash)
graphrun completion zsh > ~/.zfunc/_graphrun)",
                              run_completion};

}  // namespace graphrun::cli
