// history.h: --log: a CSV file with a line for each report of the training.
// Contract: the header is there when the training begins, then each line is one write to the end of the file, so that a
// run that is killed leaves whole lines. A training that goes on from a checkpoint takes the place of the old log at
// once, with the lines up to the checkpoint in it. A cell is empty where nothing was evaluated. Nothing is allocated
// after the constructor. Leaves to others: a write that fails (line_file.h).
#pragma once

#include <cstdint>
#include <optional>

#include "diagnostics.h"
#include "graphrun/session.h"
#include "line_file.h"

namespace graphrun::cli {

class History {
 public:
  // `resumed`: the steps of the checkpoint that it goes on from.
  History(std::optional<OutputFile>& file, const Session& session, Diagnostics& diagnostics,
          std::optional<std::uint64_t> resumed);

  void report(const Report& report);
  void finish() { lines_.finish(); }

 private:
  LineFile lines_;
  std::size_t cells_ = 0;  // of validation: its loss and metrics
};

}  // namespace graphrun::cli
