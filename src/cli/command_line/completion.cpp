// completion.cpp: the verb `completion`: a script for bash, zsh or fish, generated from the tables of verbs and flags.
// Each script finds the verb on the line and checks whether the previous word takes a value. `graphrun show MODEL
// --settings` lists the completions of --set.
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/names_of.h"
#include "cli/command_line/flags.h"
#include "cli/command_line/help.h"
#include "cli/command_line/verbs.h"
#include "cli/terminal/terminal.h"
#include "graphrun/executor.h"
#include "graphrun/show.h"
#include "graphrun/target.h"

namespace graphrun::cli {
namespace {

std::string words_of(Completes what) {
  static constexpr std::pair<Completes, std::string_view> kWords[] = {
      {Completes::formats, "text json"},
      {Completes::instruction_sets, "plain avx2 avx512"},
      {Completes::jit, "prefer require off"},
      {Completes::math, "exact fast"},
      {Completes::axes, "x y xy"}};
  if (what == Completes::executors) return fmt::format("{}", fmt::join(executor_names(), " "));
  if (what == Completes::targets) return fmt::format("{}", fmt::join(names_of(targets()), " "));
  for (const auto& [kind, words] : kWords) {
    if (kind == what) return std::string(words);
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

// `case` branches that set `flags` by verb, in the syntax of bash and zsh.
std::string verb_branches() {
  std::string text;
  for (const Verb& verb : verbs()) {
    const std::string names = verb.alias.empty() ? std::string(verb.name) : fmt::format("{}|{}", verb.name, verb.alias);
    text += fmt::format("    {}) flags='{}' ;;\n", names, flags_of(verb.name));
  }
  return text + fmt::format("    *) flags='{}' ;;\n", flags_of(verbs().front().name));
}

// Commands that complete the value of a flag by its kind; `words`: with {} in place of the words.
struct Replies {
  std::string_view files, folders, settings, words;
};

// `case` branches by the preceding flag.
std::string value_branches(const Replies& replies) {
  std::string text;
  for (const Flag& flag : flags()) {
    if (flag.value.empty()) continue;
    const std::string reply = flag.completes == Completes::files     ? std::string(replies.files)
                              : flag.completes == Completes::folders ? std::string(replies.folders)
                              : flag.completes == Completes::settings
                                  ? std::string(replies.settings)
                                  : fmt::format(fmt::runtime(replies.words), words_of(flag.completes));
    text += fmt::format("    {}) {}; return ;;\n", flag.name, reply);
  }
  return text;
}

constexpr std::string_view kShells = "bash zsh fish";

// awk program on the lines of show --settings: the choices of path `p`, or its value if there are none.
constexpr std::string_view kChoices =
    R"(index($0, p "=") == 1 { v = substr($0, length(p) + 2); n = index(v, "  ("); )"
    R"(if (n > 0) { v = substr(v, n + 3); sub(/\)$/, "", v); gsub(/ /, "\n", v) } print v })";

std::string bash_script() {
  constexpr Replies kReplies = {R"(COMPREPLY=($(compgen -f -- "$word")))", R"(COMPREPLY=($(compgen -d -- "$word")))",
                                "_graphrun_paths", R"(COMPREPLY=($(compgen -W '{}' -- "$word")))"};
  return fmt::format(R"script(# bash completion for graphrun: source <(graphrun completion bash)
_graphrun_settings() {{  # of the model on the line
  local one
  for one in "${{COMP_WORDS[@]:1}}"; do
    if [[ $one == *.@(json|safetensors) && -f $one ]]; then
      "${{COMP_WORDS[0]}}" show "$one" --settings --quiet 2>/dev/null
      return
    fi
  done
}}
_graphrun_paths() {{
  local IFS=$'\n'
  COMPREPLY=($(compgen -W "$(_graphrun_settings | sed 's/=.*/=/')" -- "$word"))
  compopt +o filenames -o nospace 2>/dev/null
}}
_graphrun_choices() {{  # of a path
  local IFS=$'\n'
  COMPREPLY=($(compgen -W "$(_graphrun_settings | awk -v p="$1" '{}')" -- "$word"))
  compopt +o filenames 2>/dev/null
}}
_graphrun() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before= earlier= after_equals= verb= flags i
  # bash cuts --flag=value into three words.
  for ((i = 1; i < COMP_CWORD; ++i)); do
    after_equals=
    if [[ ${{COMP_WORDS[i]}} == "=" ]]; then after_equals=1; else earlier=$before before=${{COMP_WORDS[i]}}; fi
  done
  if [[ $word == "=" ]]; then word= after_equals=1; fi
  if [[ -n $after_equals && ( $earlier == --set || $earlier == --over ) ]]; then
    _graphrun_choices "$before"
    return
  fi
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
    COMPREPLY=($(compgen -W '{}' -- "$word"))
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
                     kChoices, value_branches(kReplies), fmt::join(verb_names(), " "), verb_branches(), kShells,
                     fmt::join(verb_names(), " "), fmt::join(topics(), " "), fmt::join(verb_names(), " "));
}

std::string zsh_script() {
  constexpr Replies kReplies = {"_files", "_files -/", "_graphrun_paths", "compadd -- {}"};
  return fmt::format(R"script(#compdef graphrun
# zsh completion for graphrun: graphrun completion zsh > _graphrun, in a folder of $fpath
_graphrun_settings() {{  # of the model on the line
  local one
  for one in "${{(@)words[2,-1]}}"; do
    if [[ $one == *.(json|safetensors) && -f $one ]]; then
      "${{words[1]}}" show "$one" --settings --quiet 2>/dev/null
      return
    fi
  done
}}
_graphrun_paths() {{
  local setting=${{PREFIX#--*=}}
  if [[ $setting == *=* ]]; then
    compset -P 1 '*='
    compadd -- ${{(f)"$(_graphrun_settings | awk -v p="${{setting%%=*}}" '{}')"}}
  else
    compadd -S '' -- ${{(f)"$(_graphrun_settings | sed 's/=.*/=/')"}}
  fi
}}
_graphrun() {{
  local before=${{words[CURRENT-1]}} verb= flags word known
  known=({})
  if [[ $PREFIX == --*=* ]]; then
    before=${{PREFIX%%=*}}
    compset -P 1 '*='
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
    compadd -- {}
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
                     kChoices, fmt::join(verb_names(), " "), value_branches(kReplies), verb_branches(), kShells,
                     fmt::join(topics(), " "));
}

// Quotes text for fish.
std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_flag(const Flag& flag) {
  std::string line = "complete -c graphrun";
  if (!flag.verbs.empty()) line += fmt::format(" -n '__graphrun_verb_is {}'", flag.verbs);
  line += fmt::format(" -l {}", flag.name.substr(2));
  if (!flag.letter.empty()) line += fmt::format(" -s {}", flag.letter.substr(1));
  if (flag.completes == Completes::files) {
    line += " -r -F";
  } else if (flag.completes == Completes::folders) {
    line += " -x -a '(__fish_complete_directories)'";
  } else if (flag.completes == Completes::settings) {
    line += " -x -a '(__graphrun_paths)'";
  } else if (!flag.value.empty()) {
    line += fmt::format(" -x -a '{}'", words_of(flag.completes));
  }
  return line + " -d " + fish_quoted(help_of(flag)) + "\n";
}

// `case` branches that replace an alias by its verb.
std::string fish_aliases() {
  std::string text;
  for (const Verb& verb : verbs()) {
    if (!verb.alias.empty()) text += fmt::format("        case {}\n            set verb {}\n", verb.alias, verb.name);
  }
  return text;
}

std::string fish_script() {
  std::string text = fmt::format(R"script(# fish completion for graphrun: graphrun completion fish | source
function __graphrun_verb  # on the line; nothing: it is still to come, or train is meant
    for word in (commandline -opc)[2..-1]
        if contains -- $word {}
            echo $word
            return
        end
    end
end
function __graphrun_verb_is
    set -l verb (__graphrun_verb)
    test -n "$verb"; or set verb train
    switch $verb
{}    end
    contains -- $verb $argv
end
function __graphrun_settings  # of the model on the line
    for word in (commandline -opc)[2..-1] (commandline -o)[2..-1]
        if string match -qr '\.(json|safetensors)$' -- $word; and test -f $word
            set -l program (commandline -opc)[1]
            $program show $word --settings --quiet 2>/dev/null
            return
        end
    end
end
function __graphrun_paths
    set -l setting (commandline -ct | string replace -r '^--[a-z]*=' '')
    if string match -q '*=*' -- $setting
        set -l path (string split -m 1 = -- $setting)[1]
        for choice in (__graphrun_settings | awk -v p=$path '{}')
            echo $path=$choice
        end
    else
        __graphrun_settings | string replace -r '=.*' =
    end
end
function __graphrun_models
    set -l word (commandline -ct)
    for file in $word*.json $word*.safetensors $word*/
        echo $file
    end
end
complete -c graphrun -f
complete -c graphrun -n 'not __graphrun_verb_is help completion predict' -a '(__graphrun_models)'
complete -c graphrun -n '__graphrun_verb_is predict' -F
complete -c graphrun -n '__graphrun_verb_is completion' -a '{}'
complete -c graphrun -n '__graphrun_verb_is help' -a '{} {}'
)script",
                                 fmt::join(verb_names(), " "), fish_aliases(), kChoices, kShells,
                                 fmt::join(verb_names(), " "), fmt::join(topics(), " "));
  for (const Verb& verb : verbs())
    text += fmt::format("complete -c graphrun -n 'test -z \"$(__graphrun_verb)\"' -a {} -d {}\n", verb.name,
                        fish_quoted(verb.summary));
  for (const Flag& flag : flags()) text += fish_flag(flag);
  return text;
}

int run_completion(const Arguments& arguments, Diagnostics&) {
  write_results(arguments.word == "bash" ? bash_script() : arguments.word == "zsh" ? zsh_script() : fish_script());
  return kDone;
}

}  // namespace

const Verb completion_verb = {
    "completion",
    "",
    Positionals::shell,
    "print a completion script for bash, zsh or fish",
    R"(The script completes commands, flags, their values and model files. After --set and --over it completes the
settings of the model on the command line, and after = their values. An installed graphrun includes the
scripts.)",
    R"(source <(graphrun completion bash)
graphrun completion zsh > ~/.zfunc/_graphrun
graphrun completion fish > ~/.config/fish/completions/graphrun.fish)",
    run_completion};

}  // namespace graphrun::cli
