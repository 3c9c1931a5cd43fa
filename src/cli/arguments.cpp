#include "arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "graphrun/target.h"
#include "verbs.h"

namespace graphrun::cli {
namespace {

constexpr std::string_view kFooter = R"(Examples:
  graphrun model.json                                   train on the CPU, the results on stdout
  graphrun --executor=cuda model.json                   the same on a GPU
  graphrun model.json --epochs=5 --set train.optimizer.sgd.lr=0.1
  graphrun model.json --json --quiet > result.json      one JSON object and nothing else
  graphrun plan model.json --executor=cuda --target=h200
                                                        the memory plan of a GPU, without one
  graphrun verify model.json --executor=cuda            every step on a GPU against the reference

Environment:
  GRAPHRUN_DATA         searched for data files last, after --data-dir
  GRAPHRUN_THREADS      the number of threads where --threads does not say
  CUDA_VISIBLE_DEVICES  which GPUs there are, and which of them is cuda:0
  NO_COLOR              when set, no colour on a terminal

Exit codes:
  0    done
  1    the run failed: a loss that is not finite, results that could not be written
  2    bad usage, model file or data file
  3    a check that was asked for failed
  4    the device or its library is not available, or out of memory
  130  interrupted; the results so far are printed
)";

Error usage(std::string code, std::string message, std::string hint = {}) {
  if (hint.empty()) hint = "graphrun --help lists verbs and flags";
  return Error(ErrorKind::input, "usage." + code, std::move(message), std::move(hint));
}

std::string did_you_mean(std::string_view nearest) {
  return nearest.empty() ? std::string() : fmt::format("did you mean {}?", nearest);
}

class Help : public CLI::Formatter {
 public:
  Help() { column_width(26); }
  std::string make_usage(const CLI::App*, std::string) const override {
    std::string text = "\nUsage: graphrun [VERB] [FLAGS] MODEL.json\n\nVerbs:\n";
    for (const Verb& verb : verbs()) text += fmt::format("  {:<24}{}\n", verb.name, verb.summary);
    return text + "\n";
  }
  std::string make_positionals(const CLI::App*) const override { return {}; }
  std::string make_group(std::string group, bool, std::vector<const CLI::Option*> options) const override {
    std::string text = group + ":\n";
    for (const CLI::Option* option : options) text += make_option(option, false);
    return text;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() > 0 ? " " + option->get_type_name() : std::string();
  }
  std::string make_footer(const CLI::App*) const override { return std::string(kFooter); }
};

std::string version_text() {
  std::vector<std::string> names;
  for (const Target& target : targets()) names.emplace_back(target.name);
  return fmt::format("graphrun {} (C++{}, compiler {})\nexecutors: {}\ntargets: {}\n", GRAPHRUN_VERSION,
                     __cplusplus / 100 % 100, __VERSION__, fmt::join(executor_names(), " "), fmt::join(names, " "));
}

// Verb and model from the bare words of the command line. A word that is both is the verb; ./train is the file.
void interpret_words(const std::vector<std::string>& words, Arguments& arguments) {
  if (words.empty()) throw usage("no_model", "no model file was given: graphrun MODEL.json");
  std::size_t at = 0;
  if (find_verb(words[0]) != nullptr) {
    arguments.verb = words[0];
    if (words.size() == 1) throw usage("no_model", fmt::format("{} needs a model file", words[0]));
    at = 1;
  }
  const std::string& model = words[at];
  std::error_code ignored;
  if (!std::filesystem::exists(model, ignored)) {
    std::vector<std::string> names;
    for (const Verb& verb : verbs()) names.emplace_back(verb.name);
    const bool bare = model.find_first_of("./") == std::string::npos;
    const std::string verb = bare && at == 0 ? nearest_name(model, names) : std::string();
    if (!verb.empty() || (bare && at == 0 && words.size() > 1)) {
      throw usage("unknown_verb",
                  fmt::format("no verb and no file is called '{}'; the verbs are {}", model, fmt::join(names, ", ")),
                  did_you_mean(verb));
    }
    throw usage("no_such_file", fmt::format("no such file: '{}'", model));
  }
  if (std::filesystem::is_directory(model, ignored)) {
    throw usage("no_such_file", fmt::format("'{}' is a folder, not a model file", model));
  }
  if (words.size() > at + 1) {
    throw usage("extra_word", fmt::format("one model file at a time: '{}' was given, then '{}'", model, words[at + 1]));
  }
  arguments.model = model;
}

class Parser {
 public:
  Parser() {
    app_.formatter(std::make_shared<Help>());
    app_.set_help_flag("--help,-h", "print this and exit")->group("General");
    app_.set_version_flag(
            "--version", [] { return version_text(); }, "print version, build and executors, and exit")
        ->group("General");
    app_.allow_extras();  // so that unknown flags are answered with the nearest name
    app_.add_option("words", words_, "verb and model file");

    text("--executor", arguments_.session.executor, "ref, cpu (the default), cuda, cuda:1 or ./plugin.so", "NAME");
    text("--target", arguments_.session.target, "plan for this machine: host, h200, ...", "NAME");
    app_.add_option("--threads", arguments_.session.threads, "of the cpu executor; by default the cores there are")
        ->type_name("N")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
        ->group("Running");
    app_.add_flag_callback(
            "--no-passes", [this] { arguments_.session.passes = false; }, "run the graph as it was built")
        ->group("Running");

    text("--against", arguments_.against, "verify: the executor that is right, ref by default", "NAME")
        ->group("Verifying");
    app_.add_option("--steps", arguments_.steps, "verify: training steps, 3 by default; for --dump 0")
        ->type_name("N")
        ->check([](const std::string& steps) {  // would wrap around
          return steps.find('-') == std::string::npos ? std::string() : "must not be negative, got " + steps;
        })
        ->group("Verifying");
    app_.add_flag("--trajectory", arguments_.trajectory, "verify: let both run freely, tell how they part")
        ->group("Verifying");
    app_.add_option("--tolerance", arguments_.tolerance, "verify --trajectory: how far parameters may part")
        ->type_name("X")
        ->group("Verifying");
    text("--dump", arguments_.dump, "verify: only print this value of --executor after the steps", "NODE")
        ->group("Verifying");
    text("--dump-to", arguments_.dump_to, "verify --dump: write it to this NPY file instead", "FILE")
        ->group("Verifying");

    repeated("--set", "change a value of the model file; may be repeated", "PATH=VALUE");
    repeated("--epochs", "same as --set train.epochs=N", "N");
    repeated("--batch", "same as --set train.batch=N; N may be all", "N");
    repeated("--seed", "same as --set train.seed=N", "N");
    text("--data-dir", arguments_.load.data_dir, "searched for data files after the model's own folder", "FOLDER")
        ->group("Model");

    app_.add_flag("--json", arguments_.json, "results as one JSON object on stdout")->group("Output");
    text("--losses", arguments_.losses, "train: write the loss of every step, one a line", "FILE")->group("Output");
    app_.add_flag("--program", arguments_.program, "plan: print the program that executors run")->group("Output");
    text("--diagnostics", diagnostics_, "errors and warnings on stderr as text (the default) or JSON", "FORMAT")
        ->check([](const std::string& format) {
          return format == "text" || format == "json" ? std::string() : "must be text or json, got " + format;
        })
        ->group("Output");
    auto* quiet = app_.add_flag("--quiet,-q", arguments_.quiet, "no progress and no warnings")->group("Output");
    app_.add_flag("--verbose,-v", arguments_.verbose, "train: tell of splits and plan; plan: list every buffer")
        ->group("Output")
        ->excludes(quiet);
  }

  Arguments parse(int argc, const char* const* argv) {
    refuse_missing_values(argc, argv);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      arguments_.text = app_.help();
      return std::move(arguments_);
    } catch (const CLI::CallForVersion& version) {
      arguments_.text = version.what();
      return std::move(arguments_);
    } catch (const CLI::ParseError& error) {
      refuse_unknown_flags();  // the likelier cause
      throw usage("flags", error.what());
    }
    refuse_unknown_flags();
    collect_overrides();
    interpret_words(words_, arguments_);
    refuse_flags_of_other_verbs();
    return std::move(arguments_);
  }

 private:
  CLI::Option* text(const char* flag, std::string& value, const char* help, const char* kind) {
    return app_.add_option(flag, value, help)
        ->type_name(kind)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
        ->group("Running");
  }

  // One value a flag, so that `--set a=1 model.json` leaves the model alone.
  void repeated(const char* flag, const char* help, const char* kind) {
    app_.add_option(flag, repeated_[flag], help)->type_name(kind)->allow_extra_args(false)->group("Model");
  }

  // CLI11 would take the next word for the value.
  static void refuse_missing_values(int argc, const char* const* argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view word = argv[i];
      if (word == "--") return;
      if (word.starts_with("--") && word.find('=') == word.size() - 1) {
        throw usage("flags", fmt::format("{} has no value", word));
      }
    }
  }

  void refuse_unknown_flags() const {
    for (const std::string& word : app_.remaining()) {
      if (word == "--") continue;
      const std::string flag = word.substr(0, word.find('='));
      std::vector<std::string> known;
      for (const CLI::Option* option : app_.get_options()) {
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      }
      throw usage("unknown_flag", fmt::format("there is no flag {}", flag), did_you_mean(nearest_name(flag, known)));
    }
  }

  // In the order of the command line: later wins, sugar or not.
  void collect_overrides() {
    std::map<const CLI::Option*, std::size_t> taken;
    for (const CLI::Option* option : app_.parse_order()) {
      const std::string flag = option->get_name();
      if (repeated_.count(flag) == 0) continue;
      const std::string& value = option->results().at(taken[option]++);
      if (flag != "--set") {
        arguments_.load.overrides.emplace_back("train." + flag.substr(2), value);
        continue;
      }
      const std::size_t equals = value.find('=');
      if (equals == std::string::npos || equals == 0) {
        throw usage("set", fmt::format("--set takes PATH=VALUE, as in train.epochs=5, got '{}'", value));
      }
      arguments_.load.overrides.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    }
  }

  void refuse_flags_of_other_verbs() const {
    static constexpr std::pair<const char*, const char*> kOwners[] = {
        {"--losses", "train"},      {"--program", "plan"},     {"--against", "verify"}, {"--steps", "verify"},
        {"--trajectory", "verify"}, {"--tolerance", "verify"}, {"--dump", "verify"},    {"--dump-to", "verify"}};
    for (const auto& [flag, verb] : kOwners) {
      if (app_.count(flag) > 0 && arguments_.verb != verb) {
        throw usage("flag_of_other_verb", fmt::format("{} goes with {}, not with {}", flag, verb, arguments_.verb));
      }
    }
    if (arguments_.program && arguments_.json) throw usage("flags", "--program and --json exclude each other");
    if (arguments_.tolerance && !arguments_.trajectory) throw usage("flags", "--tolerance goes with --trajectory");
    if (!arguments_.dump_to.empty() && arguments_.dump.empty()) throw usage("flags", "--dump-to goes with --dump");
    if (!arguments_.dump.empty() && (arguments_.trajectory || app_.count("--against") > 0))
      throw usage("flags", "--dump reads one executor: it goes neither with --trajectory nor with --against");
  }

  CLI::App app_{"Trains a computation graph that is described in a JSON file.", "graphrun"};
  std::vector<std::string> words_;
  std::map<std::string, std::vector<std::string>> repeated_;
  std::string diagnostics_ = "text";
  Arguments arguments_;
};

}  // namespace

Arguments parse(int argc, const char* const* argv) {
  return Parser().parse(argc, argv);
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
