// run_folder.h: run folders (`graphrun train --run-dir`): command, settings and results of a training run.
// Contract: a folder has run.json (command, environment) from the start of the run, result.json (output of `train
// --json`) from its end, and model.json, log.csv and weights; see runs.md. Read-only. Throws Error (kind input), with
// position, for a file that is not JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graphrun/export.h"

namespace graphrun {

struct RunRecord {
  enum class State {
    done,
    interrupted,
    failed,      // nonfinite loss or parameter; the fields "failed" and "steps" say why and when
    unfinished,  // no result: still running, or killed
    unreadable   // only from read_run_or_error(): the field "error" says why
  };
  struct Field {
    std::string key;               // "graph.h.units", "settings.optimizer.sgd.lr", "test.loss", "scores.test.out.f1"
    std::string text;              // numbers with enough digits to round-trip; strings without quotes
    std::optional<double> number;  // nullopt if it is not a number
  };

  std::string folder, name;  // path as given; its last component
  State state = State::unfinished;
  // Fields of model.json, then of result.json, in file order, without long lists. Then "changes", if any.
  std::vector<Field> fields;

  const Field* find(std::string_view key) const {
    for (const Field& field : fields) {
      if (field.key == key) return &field;
    }
    return nullptr;
  }
};

// Hyperparameter change during training, from changes.json (absent without changes).
struct HyperparameterChange {
  std::uint64_t step = 0;  // steps finished before the change
  std::string name;        // "lr", or "NAME.lr" with several objectives
  double from = 0, to = 0;
};
GRAPHRUN_API std::vector<HyperparameterChange> read_changes(const std::string& folder);  // in the order of their steps
GRAPHRUN_API std::string to_string(const HyperparameterChange& change);  // "lr 0.1 -> 0.05 after step 120"

// Start of a run, as recorded in run.json.
struct RunProvenance {
  std::vector<std::string> command;  // arguments, program name first
  std::string folder;                // working directory of the command
  std::string model_file;            // as given in the command
  std::string version, executor;
};
GRAPHRUN_API RunProvenance read_provenance(const std::string& folder);

GRAPHRUN_API bool is_run_folder(const std::string& folder);
GRAPHRUN_API RunRecord read_run(const std::string& folder);
// The same, but a broken file gives a record with an "error" field.
GRAPHRUN_API RunRecord read_run_or_error(const std::string& folder);
// All runs in a folder, sorted by name. Throws Error if the folder does not exist.
GRAPHRUN_API std::vector<RunRecord> read_runs(const std::string& folder);

}  // namespace graphrun
