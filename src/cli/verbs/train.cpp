// train.cpp: the verb `train`: fits the model, evaluates every split, prints the results.
#include "cli/command_line/verbs.h"
#include "cli/results/results.h"
#include "cli/terminal/terminal.h"
#include "cli/training/ranks.h"
#include "cli/training/training_run.h"

namespace graphrun::cli {
namespace {

int run_train(const Arguments& arguments, Diagnostics& diagnostics) {
  if (arguments.ensemble > 0) return sweep_verb.run(arguments, diagnostics);
  Ranks ranks(arguments, diagnostics, Ranks::Share::batches);
  try {
    return train_and_store(ranks.arguments(), diagnostics, [&](const Results& results) {
      if (ranks.rank() == 0) write_results(arguments.json ? as_json(results) : as_text(results));
    });
  } catch (const Error& error) {
    if (ranks.leave(error)) throw;
    return exit_code(error.kind());
  }
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

--intervals prints the standard error and the 95 % confidence interval of each parameter after a fit by least
squares (docs/guide/fitting.md).

--ensemble N -o FOLDER trains N networks that differ in their seed, several at a time, and prints the mean and
the standard deviation of their metrics. FOLDER gets a run folder and a weights file for each network, for
`predict --weights FOLDER/*.npz`. The same command resumes it.

After Ctrl-C, train finishes the current steps and prints the results so far, without losses and hashes that
take too long to compute. The exit code is 130. docs/reference/command-line.md lists the keys of --json.

With --ranks=N, or under mpirun, srun or torchrun, several processes train one network. Weights depend on the
number of shards of the batch (--shards; 8 with ranks), but not on the number of ranks. Ranks of one machine
share memory; others use TCP, or MPI with --ranks=mpi under mpirun. With --executor=cuda, each rank has a GPU
and one shard. --gpus=N trains on N GPUs in one process.)",
    R"(graphrun model.json
graphrun train model.json --epochs=5 --set train.optimizer.sgd.lr=0.1
graphrun model.json --json --quiet > result.json
graphrun train model.json --ranks=2
mpirun -n 4 graphrun train model.json
graphrun train model.json --gpus=2
graphrun train model.json --ensemble 8 -o networks)",
    run_train};

}  // namespace graphrun::cli
