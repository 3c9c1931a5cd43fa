#include "cli/command_line/arguments.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "cli/command_line/flags.h"
#include "cli/command_line/help.h"
#include "cli/command_line/verbs.h"
#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "graphrun/show.h"

namespace graphrun::cli {
namespace {

Error usage(std::string code, std::string message, std::string hint = {}) {
  if (hint.empty()) hint = "graphrun --help lists commands and common flags";
  return Error(ErrorKind::input, "usage." + code, std::move(message), std::move(hint));
}

std::string did_you_mean(std::string_view nearest) {
  return nearest.empty() ? std::string() : fmt::format("did you mean {}?", nearest);
}

struct Given {
  std::string name;
  std::string value;
};

// The command line split into flags with their values, and other words.
struct SplitLine {
  std::vector<Given> flags;
  std::vector<std::string> words;
  std::size_t after_weights = 0;  // words before --weights
};

// A flag like --lr may name a setting of the model on the line.
[[noreturn]] void reject_unknown(const std::string& name, int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::filesystem::path file = argv[i];
    std::error_code ignored;
    if (file.extension() != ".json" && file.extension() != ".safetensors") continue;
    if (!std::filesystem::is_regular_file(file, ignored)) continue;
    const std::string hint =
        setting_hint(file.string(), name.substr(std::min(name.find_first_not_of('-'), name.size())));
    if (!hint.empty()) throw usage("unknown_flag", fmt::format("there is no flag {}", name), hint);
  }
  std::vector<std::string> known;
  for (const Flag& flag : flags()) known.emplace_back(flag.name);
  throw usage("unknown_flag", fmt::format("there is no flag {}", name), did_you_mean(nearest_name(name, known)));
}

// Each flag takes exactly one value, so that `--set a=1 model.json` does not consume the model.
SplitLine split(int argc, const char* const* argv) {
  SplitLine result;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") {
      result.words.insert(result.words.end(), argv + i + 1, argv + argc);
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      result.words.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const Flag* flag = find_flag(current_name(name, result.words.empty() ? "" : result.words[0]));
    if (flag == nullptr) reject_unknown(name, argc, argv);
    Given given{std::string(flag->name), {}};
    if (flag->value.empty()) {
      if (equals != std::string::npos) throw usage("flags", fmt::format("{} takes no value", name));
    } else if (equals != std::string::npos) {
      given.value = word.substr(equals + 1);
      if (given.value.empty()) throw usage("flags", fmt::format("{} has no value", word));
    } else if (!flag->bare.empty()) {
      given.value = flag->bare;
    } else {
      // A value that looks like a flag means that the value is missing; --flag=--value is accepted.
      const bool there = i + 1 < argc && std::string_view(argv[i + 1]).substr(0, 2) != "--";
      if (!there) throw usage("flags", fmt::format("{0} needs a value: {0} {1}", flag->name, flag->value));
      given.value = argv[++i];
    }
    if (given.name == "--weights") result.after_weights = result.words.size();
    result.flags.push_back(std::move(given));
  }
  return result;
}

bool is_weights_name(std::string_view path) {
  return path.ends_with(".npz") || path.ends_with(".safetensors");
}

// `predict MODEL DATA --weights FOLDER/*.npz`: all files but the first are words after the flag. Two words are the
// model and the data.
void take_weights(SplitLine& line) {
  std::vector<std::string>& words = line.words;
  const std::size_t at = line.after_weights;
  if (words.empty() || words[0] != "predict" || at == 0) return;
  while (words.size() > 3 && at < words.size() && is_weights_name(words[at])) {
    line.flags.push_back({"--weights", words[at]});
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

void apply(const Flag& flag, std::string_view said_as, std::string_view value, Arguments& arguments) {
  try {
    flag.set(arguments, value);
  } catch (const BadValue& bad) {
    throw usage("flags", fmt::format("{} {}", said_as, bad.reason));
  }
}

bool was_given(const SplitLine& line, std::string_view name) {
  for (const Given& given : line.flags) {
    if (given.name == name) return true;
  }
  return false;
}

void apply_flags(const SplitLine& line, Arguments& arguments) {
  for (const Given& given : line.flags) {
    const Flag& flag = *find_flag(given.name);
    if (!belongs(flag, arguments.verb)) {
      std::string owners;
      for (const Verb& verb : verbs()) {
        if (belongs(flag, verb.name)) owners += fmt::format("{}{}", owners.empty() ? "" : ", ", verb.name);
      }
      throw usage("flag_of_other_verb", fmt::format("{} goes with {}, not with {}", given.name, owners, arguments.verb),
                  fmt::format("graphrun {} --help lists its flags", arguments.verb));
    }
    apply(flag, given.name, given.value, arguments);
  }
  for (const Flag& flag : flags()) {
    if (flag.variable.empty() || !belongs(flag, arguments.verb) || was_given(line, flag.name)) continue;
    const char* value = std::getenv(std::string(flag.variable).c_str());
    if (value == nullptr || *value == '\0') continue;
    // Variables may come from others: they choose a built-in executor and never load code.
    if (flag.completes == Completes::executors && plugin_name(value)) {
      throw usage(
          "flags",
          fmt::format("{} takes the name of an executor, not the path of a plug-in, got '{}'", flag.variable, value),
          fmt::format("{}={} loads it", flag.name, value));
    }
    apply(flag, flag.variable, value, arguments);
  }
}

// ---- words other than flags

void reject_extra(const std::vector<std::string>& words, std::size_t at, std::string_view verb) {
  if (words.size() <= at) return;
  throw usage("extra_word", fmt::format("{} does not take '{}'", verb, words[at]),
              verb == "predict" && is_weights_name(words[at - 1])
                  ? "weights files follow --weights: graphrun predict MODEL.json DATA --weights FOLDER/*.npz"
                  : "");
}

// Hint for a word after the model.
std::string hint_for_extra(const std::string& word, const Verb& verb) {
  if (verb.name == "show")
    return fmt::format("graphrun show MODEL.json --values {} prints the values of '{}'", word, word);
  if (!is_weights_name(word)) return "";
  if (verb.name == "train") return fmt::format("--resume={} resumes from a checkpoint", word);
  return verb.name == "eval" ? "eval takes one weights file; predict takes several" : "--weights=FILE names weights";
}

// The most similar path of a model file in the folder of a missing one; "" if none is similar.
std::string nearest_model(const std::string& path) {
  const std::string near = nearest_file(path, ".json");
  return near.empty() ? near : (std::filesystem::path(path).parent_path() / near).string();
}

// Reports a word that is neither a verb nor a file, with the most similar name.
[[noreturn]] void reject_missing(const std::string& model, bool first, bool more) {
  const bool bare = model.find_first_of("./") == std::string::npos;
  const std::string verb = bare && first ? nearest_name(model, verb_names()) : std::string();
  if (!verb.empty() || (bare && first && more)) {
    std::vector<std::string_view> names;
    for (const Verb& known : verbs()) names.push_back(known.name);
    throw usage(
        "unknown_verb",
        fmt::format("no command and no file is called '{}'; the commands are {}", model, fmt::join(names, ", ")),
        did_you_mean(verb));
  }
  throw usage("no_such_file", fmt::format("no such file: '{}'", model), did_you_mean(nearest_model(model)));
}

// Rejects weights or data given as the model: the JSON reader would report their first byte.
void reject_data(const std::string& model, const Verb& verb) {
  const std::string extension = std::filesystem::path(model).extension().string();
  for (const std::string_view known : {".csv", ".npy", ".npz", ".gz"}) {
    if (extension != known) continue;
    throw usage("no_model", fmt::format("'{}' is a file of data, not a model file", model),
                verb.positionals == Positionals::model_and_data ? fmt::format("graphrun {} MODEL.json DATA", verb.name)
                : extension == ".csv"
                    ? fmt::format("graphrun init {} --label COLUMN -o model.json writes a model for it{}", model,
                                  verb.name == "studio" ? "; the page of graphrun studio takes a table, too" : "")
                    : "a model file is JSON: graphrun MODEL.json");
  }
}

const std::string kStdin = "/dev/stdin";
const std::string kRuns = "runs";

void take_model(const std::vector<std::string>& words, std::size_t at, const Verb& verb, Arguments& arguments) {
  const std::string& model = words[at] == "-" ? kStdin : words[at];
  std::error_code ignored;
  if (!std::filesystem::exists(model, ignored)) reject_missing(model, at == 0, words.size() > at + 1);
  if (std::filesystem::is_directory(model, ignored)) {
    throw usage("no_such_file", fmt::format("'{}' is a folder, not a model file", model));
  }
  reject_data(model, verb);
  arguments.model = model;
  arguments.load.text = std::make_shared<std::optional<std::string>>();  // shared, because some verbs load it twice
  arguments.load.piped_weights = std::make_shared<std::optional<std::string>>();
}

void take_shell(const std::vector<std::string>& words, Arguments& arguments) {
  arguments.word = words.size() > 1 ? words[1] : "";
  if (arguments.word != "bash" && arguments.word != "zsh" && arguments.word != "fish") {
    throw usage("shell", words.size() > 1 ? fmt::format("completion knows bash, zsh and fish, not '{}'", words[1])
                                          : "completion needs the name of a shell: bash, zsh or fish");
  }
  reject_extra(words, 2, "completion");
}

// Rejects a word after `help` that is neither a verb nor a topic. Suggests a name only if it begins with the same
// letter.
void reject_help(const std::string& word) {
  std::vector<std::string> known = topics();
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  for (const std::string& verb : verb_names()) known.push_back(verb);
  const std::string near = nearest_name(word, known);
  const bool is_near = !near.empty() && std::tolower(near[0]) == std::tolower(static_cast<unsigned char>(word[0]));
  throw usage("help.unknown", fmt::format("unknown command or topic '{}'", word),
              is_near ? did_you_mean(near) : "graphrun --help lists the commands, graphrun help the topics");
}

void take_data(const std::vector<std::string>& words, const Verb& verb, Arguments& arguments) {
  if (words.size() < 2) {
    throw usage("no_data",
                verb.positionals == Positionals::onnx
                    ? fmt::format("{0} needs an ONNX file: graphrun {0} NET.onnx -o MODEL.safetensors", verb.name)
                    : fmt::format("{0} needs a data file: graphrun {0} DATA.csv --label COLUMN", verb.name));
  }
  arguments.word = words[1];
  std::error_code ignored;
  if (!std::filesystem::exists(arguments.word, ignored))
    throw usage("no_such_file", fmt::format("no such file: '{}'", arguments.word));
  reject_extra(words, 2, verb.name);
}

void take_tables(const std::vector<std::string>& words, const Verb& verb, Arguments& arguments) {
  if (words.size() < 2) {
    throw usage("no_data", fmt::format("{} needs a CSV file: graphrun {} RUN.csv", verb.name, verb.name),
                "graphrun train MODEL.json --log RUN.csv writes one");
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& path = words[i] == "-" ? kStdin : words[i];
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) throw usage("no_such_file", fmt::format("no such file: '{}'", path));
    arguments.files.push_back(path);
  }
}

void take_verb(const std::vector<std::string>& words, Arguments& arguments) {
  arguments.word = words.size() > 1 ? words[1] : "";
  static constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {{"initialisers", "initializers"},
                                                                                  {"missing", "data"},
                                                                                  {"imputation", "data"},
                                                                                  {"csv", "data"},
                                                                                  {"surface", "plot"},
                                                                                  {"checkpoint", "train"},
                                                                                  {"checkpoints", "train"},
                                                                                  {"resume", "train"}};
  for (const auto& [other, name] : kOtherNames)
    if (arguments.word == other) arguments.word = name;
  if (words.size() > 1 && find_verb(arguments.word) == nullptr) reject_help(arguments.word);
  reject_extra(words, 2, "help");
}

// `runs` without a folder lists ./runs if it exists.
void take_usual_folder(const Verb& verb, Arguments& arguments) {
  std::error_code ignored;
  if (verb.name != "runs" || !std::filesystem::is_directory(kRuns, ignored)) {
    throw usage("no_folder", fmt::format("{0} needs a folder: graphrun {0} FOLDER", verb.name),
                fmt::format("graphrun train MODEL.json --run-dir {} stores a run in one", kRuns));
  }
  arguments.names = {kRuns};
}

// A word that is both a verb and a file is the verb; ./train is the file.
void take_words(const std::vector<std::string>& words, Arguments& arguments) {
  if (words.empty()) throw usage("no_model", "no model file was given: graphrun MODEL.json");
  const Verb* verb = find_verb(words[0]);
  const std::size_t at = verb == nullptr ? 0 : 1;
  if (verb == nullptr) verb = &verbs().front();
  arguments.verb = verb->name;
  switch (verb->positionals) {
    case Positionals::none:
      return reject_extra(words, at, verb->name);
    case Positionals::shell:
      return take_shell(words, arguments);
    case Positionals::verb:
      return take_verb(words, arguments);
    case Positionals::data:
    case Positionals::onnx:
      return take_data(words, *verb, arguments);
    case Positionals::folder:
    case Positionals::folders:
      if (words.size() == at) return take_usual_folder(*verb, arguments);
      arguments.names.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
      return;
    case Positionals::tables:
      return take_tables(words, *verb, arguments);
    case Positionals::model_or_none:
      if (words.size() == at) return;
      break;
    case Positionals::model:
    case Positionals::model_and_data:
      break;
  }
  if (words.size() == at) throw usage("no_model", fmt::format("{} needs a model file", words[0]));
  take_model(words, at, *verb, arguments);
  if (verb->positionals == Positionals::model_and_data) {
    if (!arguments.word.empty()) return reject_extra(words, at + 1, verb->name);  // --grid
    if (words.size() == at + 1) {
      throw usage("no_data", fmt::format("{} needs a data file: graphrun {} {} DATA", words[0], words[0], words[at]),
                  "a CSV, JSON, NPY, NPZ, IDX or PNG file with a row for each prediction, or - for stdin");
    }
    arguments.word = words[at + 1];
    if (arguments.model == kStdin && (arguments.word == "-" || arguments.word == kStdin))
      throw usage("stdin", "the model and the data cannot both come from stdin", "give one of them as a file");
    return reject_extra(words, at + 2, verb->name);
  }
  if (arguments.show.values) {
    arguments.names.assign(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end());
    return;
  }
  if (words.size() > at + 1) {
    throw usage("extra_word",
                fmt::format("one model file at a time: '{}' was given, then '{}'", words[at], words[at + 1]),
                hint_for_extra(words[at + 1], *verb));
  }
}

// `show --weights FILE [NAME ...]` has no model: its other words are arrays of that file.
bool takes_arrays(const SplitLine& line, Arguments& arguments) {
  const std::vector<std::string>& words = line.words;
  if (words.empty() || words[0] != "show" || !was_given(line, "--weights") || was_given(line, "--values")) return false;
  if (std::error_code ignored;
      words.size() > 1 && words[1].ends_with(".json") && std::filesystem::exists(words[1], ignored))
    throw usage(
        "flags", "show MODEL.json --weights FILE goes with --values",
        fmt::format("graphrun show {} --values --weights FILE shows what the model computes with them", words[1]));
  arguments.verb = words[0];
  arguments.show.arrays = true;
  arguments.names.assign(words.begin() + 1, words.end());
  return true;
}

// `plan --buffers FILE` has no model.
bool takes_buffers(const SplitLine& line, Arguments& arguments) {
  if (line.words.empty() || line.words[0] != "plan" || !was_given(line, "--buffers")) return false;
  arguments.verb = line.words[0];
  reject_extra(line.words, 1, "plan --buffers");
  return true;
}

// Flags that `sweep` passes on to each training run.
std::vector<std::string> flags_of_trainings(const SplitLine& line) {
  std::vector<std::string> words;
  for (const Given& given : line.flags) {
    const Flag* flag = find_flag(given.name);
    if ((flag->group != "Execution" && flag->group != "Model") || flag->name == "--ranks" || flag->name == "--gpus")
      continue;
    words.push_back(flag->value.empty() ? given.name : given.name + "=" + given.value);
  }
  return words;
}

void reject_contradictions(const SplitLine& line, const Arguments& arguments) {
  if ((arguments.verb == "eval" || arguments.verb == "predict") && arguments.load.weights.empty() &&
      !is_weights(arguments.model, arguments.load)) {
    throw usage("no_weights",
                fmt::format("{} needs the weights of a trained model: --weights=FILE.npz", arguments.verb),
                fmt::format("graphrun train {} --save-weights FILE.npz writes them", arguments.model));
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(arguments.load.weights, ignored))
    throw usage("no_weights", fmt::format("--weights '{}' is a folder, not a weights file", arguments.load.weights),
                arguments.verb == "predict"
                    ? fmt::format("--weights {}/*.npz names the files in it", arguments.load.weights)
                    : "");
  if (arguments.verb == "init" && arguments.column.empty() && !std::filesystem::is_directory(arguments.word, ignored)) {
    throw usage("no_target", "init needs the name of the column to predict: --label=COLUMN",
                fmt::format("graphrun init {} --label price -o model.json", arguments.word));
  }
  if (arguments.quiet && arguments.verbose) throw usage("flags", "--quiet and --verbose exclude each other");
  if (!arguments.run_name.empty() && arguments.run_dir.empty()) throw usage("flags", "--run-name goes with --run-dir");
  const bool has_place = !arguments.checkpoint_dir.empty() || !arguments.run_dir.empty();
  for (const std::string_view flag : {"--checkpoint-every", "--checkpoint-keep"}) {
    if (was_given(line, flag) && !has_place)
      throw usage("flags", fmt::format("{} goes with --checkpoint-dir or --run-dir", flag));
  }
  if (arguments.resume == "auto" && arguments.checkpoint_dir.empty() && arguments.run_name.empty())
    throw usage("flags",
                "--resume=auto needs the folder of the checkpoints: --checkpoint-dir, or --run-dir and --run-name",
                "--resume=FILE resumes from a single file");
  const bool is_ensemble = arguments.ensemble > 0;
  if (arguments.verb == "train" && !is_ensemble && (was_given(line, "--at-once") || was_given(line, "--output")))
    throw usage("flags", fmt::format("{} goes with --ensemble", was_given(line, "--output") ? "--output" : "--at-once"),
                "--save-weights names the file of the weights");
  if (is_ensemble && arguments.output.empty())
    throw usage("flags", "--ensemble needs a folder for the networks: -o FOLDER");
  for (const Given& given : line.flags) {
    if (is_ensemble && given.name != "--ensemble" && given.name != "--output" &&
        (given.name == "--run-dir" || !belongs(*find_flag(given.name), "sweep")))
      throw usage("flags", fmt::format("{} does not go with --ensemble", given.name));
  }
  if (was_given(line, "--jobs") && arguments.halving > 0)
    throw usage("flags", "--jobs and --halving exclude each other", "--halving trains in threads: --at-once");
  if (was_given(line, "--jobs") && was_given(line, "--at-once"))
    throw usage("flags", "--jobs and --at-once exclude each other",
                "--jobs trains in processes, --at-once in threads of one process");
  if (was_given(line, "--jobs") && arguments.gpus > 0)
    throw usage("flags", "--jobs and --gpus exclude each other", "--gpus divides trainings in threads: --at-once");
  if (arguments.csv && arguments.json) throw usage("flags", "--csv and --json exclude each other");
  if (arguments.svg + arguments.csv + arguments.html + arguments.program + arguments.json > 1 &&
      arguments.verb == "plan")
    throw usage("flags", "--svg, --csv, --html, --program and --json exclude each other");
  if (arguments.plan.buffers.empty() && (arguments.plan.capacity || was_given(line, "--time-limit")))
    throw usage("flags", "--capacity and --time-limit go with --buffers");
  if (!arguments.plan.buffers.empty()) {
    for (const Given& given : line.flags) {
      const std::string_view group = find_flag(given.name)->group;
      if (group == "Execution" || group == "Model" || given.name == "--lock" || given.name == "--check" ||
          given.name == "--svg" || given.name == "--html" || given.name == "--program" || given.name == "--at-once")
        throw usage("flags", fmt::format("{} goes with a model, not with --buffers", given.name));
    }
  }
  const Arguments::Show& show = arguments.show;
  const bool has_form = show.dot || show.whole_step || show.rows || show.source;
  if (!show.save_array.empty() && arguments.names.size() != 1)
    throw usage("flags", "--save-array goes with one array: graphrun show --weights FILE NAME --save-array FILE.npy");
  if (!show.values && arguments.verb == "show" && (!arguments.split.empty() || !show.of.empty()))
    throw usage("flags", fmt::format("{} goes with --values", show.of.empty() ? "--split" : "--of"));
  if (show.settings && (show.values || show.gradients || has_form))
    throw usage("flags", "show --settings goes with no other form but --json");
  if (show.values && has_form) throw usage("flags", "show --values goes with no other form");
  if (arguments.json && !show.values && !show.settings && (show.gradients || has_form))
    throw usage("flags", "show --json prints the model file: it goes with no other form");
  if (arguments.verb == "show" && arguments.svg &&
      (arguments.json || show.gradients || show.dot || show.rows || show.source || show.arrays))
    throw usage("flags", "show --svg draws the graph: it goes with no other form but --whole-step");
  if (arguments.session.executor == "auto" && !arguments.session.target.empty())
    throw usage("flags", "--executor=auto measures on this machine: it does not go with --target");
  const Arguments::Verify& verify = arguments.verify;
  if (verify.tolerance && !verify.trajectory) throw usage("flags", "--tolerance goes with --trajectory");
  if (!verify.dump_to.empty() && verify.dump.empty()) throw usage("flags", "--dump-to goes with --dump");
  if (!verify.dump.empty() && (verify.trajectory || was_given(line, "--against")))
    throw usage("flags", "--dump reads one executor: it goes neither with --trajectory nor with --against");
}

}  // namespace

Arguments parse(int argc, const char* const* argv) {
  SplitLine line = split(argc, argv);
  take_weights(line);
  Arguments arguments;
  arguments.help = was_given(line, "--help");
  arguments.version = was_given(line, "--version") && !arguments.help;
  if (arguments.help || arguments.version) {
    if (!line.words.empty() && find_verb(line.words[0]) != nullptr) arguments.word = line.words[0];
    return arguments;
  }
  arguments.show.values = was_given(line, "--values");
  if (was_given(line, "--grid")) arguments.word = "--grid";
  if (!takes_arrays(line, arguments) && !takes_buffers(line, arguments)) take_words(line.words, arguments);
  for (Given& given : line.flags) given.name = current_name(given.name, arguments.verb);
  apply_flags(line, arguments);
  reject_contradictions(line, arguments);
  arguments.command.assign(argv, argv + argc);
  if (arguments.ensemble > 0) arguments.seeds = arguments.ensemble, arguments.run_dir = arguments.output;
  if (arguments.verb == "sweep" || arguments.ensemble > 0) {
    arguments.passed_on = flags_of_trainings(line);
    if (arguments.run_dir.empty())
      arguments.run_dir = std::filesystem::path(arguments.model).stem().string() + "-sweep";
  }
  return arguments;
}

Diagnostics::Format diagnostics_format(int argc, const char* const* argv) {
  auto format = Diagnostics::Format::text;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool json = word == "--diagnostics=json" ||
                      (word == "--diagnostics" && i + 1 < argc && std::string_view(argv[i + 1]) == "json");
    if (json) format = Diagnostics::Format::json;
    if (word == "--diagnostics=text") format = Diagnostics::Format::text;
  }
  return format;
}

}  // namespace graphrun::cli
