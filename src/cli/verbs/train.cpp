// train.cpp: the verb `train`: fits the model, evaluates every split, prints the results.
#include "cli/command_line/verbs.h"
#include "cli/results/results.h"
#include "cli/terminal/terminal.h"
#include "cli/training/training_run.h"

namespace graphrun::cli {
namespace {

int run_train(const Arguments& arguments, Diagnostics& diagnostics) {
  return train_and_store(arguments, diagnostics, [&](const Results& results) {
    write_results(arguments.json ? as_json(results) : as_text(results));
  });
}

}  // namespace

const Verb train_verb = {
    "train",
    "",
    Positionals::model,
    "train a model and evaluate it on every split of the data",
    R"(Trains for the number of epochs in the model file, then evaluates the loss and the metrics of every split with
the final weights. With early_stopping, training may end sooner, and the best weights are restored by default.
`eval` also prints the confusion matrix. Progress goes to stderr, results to stdout.

After Ctrl-C, train finishes the current steps and prints the results so far, without losses and hashes that
take too long to compute. The exit code is 130. docs/reference/command-line.md lists the keys of --json.)",
    R"(graphrun model.json
graphrun train model.json --epochs=5 --set train.optimizer.sgd.lr=0.1
graphrun model.json --json --quiet > result.json)",
    run_train};

}  // namespace graphrun::cli
