// history.h: --log: a CSV file with a line for each report of the training.
// Contract: the header is written when it is opened, then each line by one write to the end of the file, so that a run
// that is killed leaves whole lines. A cell is empty where nothing was evaluated. After it is opened nothing is
// allocated. Throws Error: kind input when it cannot be opened, kind run when it cannot be written.
#pragma once

#include <fmt/format.h>

#include <string>

#include "graphrun/session.h"

namespace graphrun::cli {

class History {
 public:
  History() = default;
  History(const std::string& path, const Session& session);
  ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  void report(const Report& report);

 private:
  void write_line();

  std::string path_;
  int file_ = -1;
  std::size_t cells_ = 0;  // of validation: its loss and metrics
  fmt::memory_buffer line_;
};

}  // namespace graphrun::cli
