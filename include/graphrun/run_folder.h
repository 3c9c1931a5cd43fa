// run_folder.h: folders that a training left (`graphrun train --run-dir`): what was run, how, and what came of it.
// Contract: a folder has run.json (command, environment) from the beginning of the run, result.json (what `train
// --json` prints) from its end, and model.json, log.csv and weights beside them; runs.md. Reads only. Throws Error
// (kind input) for a file that is not JSON, with its place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graphrun/export.h"

namespace graphrun {

struct RunRecord {
  enum class State {
    done,
    interrupted,
    failed,      // its loss or a parameter was not finite: the entries "failed" and "steps" tell why and when
    unfinished,  // no result: it runs or was killed
    unreadable   // of read_run_or_error(): the entry "error" tells why
  };
  struct Field {
    std::string key;               // "graph.h.units", "settings.optimizer.sgd.lr", "test.loss", "scores.test.out.f1"
    std::string text;              // a number with the digits that give it back; a word without quotes
    std::optional<double> number;  // none: it is no number
  };

  std::string folder, name;  // as it was found; the last part of it
  State state = State::unfinished;
  // Of model.json, then of result.json, in their order; without what is only in long lists. Then "changes", if any.
  std::vector<Field> fields;

  const Field* find(std::string_view key) const {
    for (const Field& field : fields) {
      if (field.key == key) return &field;
    }
    return nullptr;
  }
};

// A number of the optimizer that was changed while the run trained: changes.json, which no other run has.
struct HyperparameterChange {
  std::uint64_t step = 0;  // after so many steps
  std::string name;        // "lr"; of one of several objectives "NAME.lr"
  double from = 0, to = 0;
};
GRAPHRUN_API std::vector<HyperparameterChange> read_changes(const std::string& folder);  // in the order of their steps
GRAPHRUN_API std::string to_string(const HyperparameterChange& change);  // "lr 0.1 -> 0.05 after step 120"

// How a run was started, as run.json has it.
struct RunProvenance {
  std::vector<std::string> command;  // words, the program's name first
  std::string folder;                // it was given in
  std::string model_file;            // as the command names it
  std::string version, executor;
};
GRAPHRUN_API RunProvenance read_provenance(const std::string& folder);

GRAPHRUN_API bool is_run_folder(const std::string& folder);
GRAPHRUN_API RunRecord read_run(const std::string& folder);
// The same, but the record tells of a file that is broken.
GRAPHRUN_API RunRecord read_run_or_error(const std::string& folder);
// The runs that lie in a folder, by name. Throws Error when there is no such folder.
GRAPHRUN_API std::vector<RunRecord> read_runs(const std::string& folder);

}  // namespace graphrun
