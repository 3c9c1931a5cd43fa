// history.h: --log and --tensorboard: writes a row per training report to every requested file.
// Contract: columns are fixed at the start. Each row is one append to each file, so that a killed run leaves readable
// files. A cell is empty if its value was not evaluated. Allocates nothing after the constructor. Not handled here:
// formats (text_logs.h, event_log.h), failed writes (line_file.h).
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
  // `resumed`: steps of the checkpoint; rows up to there are kept. `replaces`: replaces older files at the start
  // instead of at the end, so that a resumed training continues with the rows of this one.
  History(OutputFiles& outputs, const Session& session, bool hashes, std::optional<std::uint64_t> resumed,
          bool replaces, Diagnostics& diagnostics);

  void report(const Report& report);
  void finish();  // closes all files, then throws the error of the first failed write

 private:
  std::vector<LogColumn> columns_;
  std::vector<LogCell> cells_;
  std::vector<std::unique_ptr<LogWriter>> writers_;
  std::size_t metrics_ = 0;  // number of validation columns (loss and metrics), or 0
  bool factor_ = false, hashes_ = false;
};

}  // namespace graphrun::cli
