// history.h: --log and --tensorboard: a row for each report of the training, in every file that was asked for.
// Contract: the columns are known when the training begins, then each row is one write to the end of each file, so that
// a run that is killed leaves what can be read. A cell is empty where nothing was evaluated. Nothing is allocated after
// the constructor. Leaves to others: formats (text_logs.h, event_log.h), a write that fails (line_file.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cli/command_line/diagnostics.h"
#include "cli/terminal/output_files.h"
#include "cli/training/log_row.h"
#include "graphrun/session.h"

namespace graphrun::cli {

class History {
 public:
  // `resumed`: the steps of the checkpoint that it goes on from; rows up to there stay in the files. `replaces`: older
  // files make place now, not at the end: a training that may be killed and go on goes on with rows of its own.
  History(OutputFiles& outputs, const Session& session, bool hashes, std::optional<std::uint64_t> resumed,
          bool replaces, Diagnostics& diagnostics);

  void report(const Report& report);
  void finish();  // throws what the first write that failed threw, after all files have ended

 private:
  std::vector<LogColumn> columns_;
  std::vector<LogCell> cells_;
  std::vector<std::unique_ptr<LogWriter>> writers_;
  std::size_t metrics_ = 0;  // columns of validation, if there are any: its loss and metrics
  bool factor_ = false, hashes_ = false;
};

}  // namespace graphrun::cli
