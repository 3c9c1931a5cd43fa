// training_run.h: one training with everything that `train` makes of it: log, weights, checkpoints, run folder,
// results. Contract: trains until the end, an interrupt (interrupt.h) or an error, and returns the exit code. Threads
// may train at the same time if their outputs are different files and none counts allocations (allocations.h). Throws
// Error.
#pragma once

#include <functional>

#include "cli/command_line/arguments.h"
#include "cli/command_line/diagnostics.h"
#include "cli/results/results.h"
#include "cli/stored_runs/run_folder.h"

namespace graphrun::cli {

using PrintResults = std::function<void(const Results&)>;  // may be empty

// If `unsynced` is not null, the caller syncs log, weights and model and completes the run (run_folder.h).
int train_and_store(const Arguments& arguments, Diagnostics& diagnostics, const PrintResults& print,
                    UnsyncedRun* unsynced = nullptr);

}  // namespace graphrun::cli
