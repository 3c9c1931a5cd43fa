#include "verbs.h"

namespace graphrun::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"train", "", Words::model, "train the model and evaluate it on its splits (the default)",
     R"(Trains for the model's number of epochs, then evaluates loss and metrics on every split with the final weights.
Progress goes to stderr, the results to stdout. Ctrl-C ends the training and keeps what it has: the results so far
are printed and the exit code is 130. With --json, stdout is one object with the keys model, executor, train,
validation, test, epochs, steps, seconds, steps_per_second, interrupted, arena_bytes, weights_hash; a split holds
loss, then each metric by name, or is null where the model has none.)",
     R"(graphrun model.json
graphrun train model.json --epochs=5 --set train.optimizer.sgd.lr=0.1
graphrun model.json --json --quiet > result.json)",
     run_train},
    {"eval", "test", Words::model, "evaluate saved weights on the model's splits",
     R"(Evaluates loss and metrics of --weights on every split of the model, and trains nothing. The data are split and
transformed as when the weights were trained, whatever --seed says; where that cannot be, because the rows or the
split are others now, the exit code is 2. With --json, stdout is one object with the keys model, executor, train,
validation, test, arena_bytes, weights_hash.)",
     R"(graphrun train model.json --save-weights model.npz
graphrun eval model.json --weights model.npz)",
     run_eval},
    {"predict", "", Words::model_and_data, "print what the model says of the rows of a file, as CSV",
     R"(Reads the rows of a CSV, NPY or NPZ file and prints the model's outputs for each as CSV, in the units of the
targets. A CSV file names its columns in the first line: as the model names those of its table, or x0, x1, ... for an
array x of several numbers a row; other columns are not looked at. An NPY file is the model's one input, an NPZ file
has inputs by name. A row's outputs depend on that row alone. Needs --weights, and none of the model's own data. With
--json, stdout is one object with the keys model, executor, rows, columns, predictions.)",
     R"(graphrun train model.json --save-weights model.npz
graphrun predict model.json new.csv --weights model.npz > predictions.csv)",
     run_predict},
    {"plan", "", Words::model, "show the memory plan and the steps; needs no device",
     R"(Prints how many bytes the run will take, what they are for, and the steps of each phase. Nothing is allocated or
computed, and the plan for a GPU needs none.)",
     R"(graphrun plan model.json
graphrun plan model.json --executor=cuda --target=h200 --json
graphrun plan model.json --program)",
     run_plan},
    {"verify", "", Words::model, "run two executors step by step and compare every value",
     R"(First every step alone: both executors get the same inputs, and every value is compared with the op's tolerance.
Then what a run does: the program with its regions from equal states, each phase at once, predictions of full and
partial batches, and many steps in one call, which must leave the same bits as steps one by one. A difference is
printed with step, op and element, and the exit code is 3. With --dump it prints one value of one executor instead.)",
     R"(graphrun verify model.json --executor=cuda
graphrun verify model.json --steps=10 -v
graphrun verify model.json --trajectory --steps=500 --tolerance=1e-4
graphrun verify model.json --dump=loss --steps=3)",
     run_verify},
    {"bench", "time", Words::model, "measure how long training steps take",
     R"(Trains without looking at the loss and measures. Steps per second are those of a run of many steps; p50 to max are of
steps one at a time, after those that warm up. What comes before the first step's end is told apart. Where --steps
does not say, it measures for two seconds. With --idle-gap-ms each step comes after a pause, as in a program that has
to answer now and then; with --deadline-us a step that takes longer is exit code 3.)",
     R"(graphrun bench model.json
graphrun bench model.json --executor=cuda --steps=1000 --json
graphrun bench model.json --idle-gap-ms=5 --deadline-us=200)",
     run_bench},
    {"show", "", Words::model, "print the model's graph with the shape of every value; needs no data",
     R"(Prints inputs, parameters, graph, outputs and training as graphrun understood them, with the shape of every value.
--gradients adds the nodes one by one and those that compute the gradients, --dot draws them for Graphviz, --json
prints the canonical model file: the same model with every default filled in.)",
     R"(graphrun show model.json --gradients
graphrun show model.json --dot | dot -Tsvg > model.svg
graphrun show model.json --json > canonical.json)",
     run_show},
    {"check", "", Words::model, "find every mistake of a model file; needs no data",
     R"(Reads the file, infers all shapes, looks for gradients and plans what --executor would run, without its data: a size
that only the data would tell is assumed. All mistakes are reported at once, each with its place; the exit code is
then 2.)",
     R"(graphrun check model.json
graphrun check model.json --diagnostics=json)",
     run_check},
    {"devices", "device-query", Words::none, "list what executors could run on here, and what they lack",
     R"(Each executor's devices: the name that --executor takes, memory free and total, capability, driver; or one line on
what is missing. The exit code is 0 either way. --json: an object with the arrays devices and missing.)",
     R"(graphrun devices
graphrun devices --json)",
     run_devices},
    {"completion", "", Words::shell, "print a script that completes verbs and flags: bash or zsh",
     R"(The script offers verbs, flags, their values and model files when Tab is pressed.)",
     R"(source <(graphrun completion bash)
graphrun completion zsh > ~/.zfunc/_graphrun)",
     run_completion},
    {"help", "", Words::verb, "print this, or the help of one verb",
     R"(The same as --help, and with a verb as VERB --help.)", R"(graphrun help verify)", run_help},
};

}  // namespace

std::span<const Verb> verbs() {
  return kVerbs;
}

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : kVerbs) {
    if (verb.name == name || (!verb.alias.empty() && verb.alias == name)) return &verb;
  }
  return nullptr;
}

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) {
    names.emplace_back(verb.name);
    if (!verb.alias.empty()) names.emplace_back(verb.alias);
  }
  return names;
}

}  // namespace graphrun::cli
