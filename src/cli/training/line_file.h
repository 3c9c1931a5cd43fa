// line_file.h: append-only file of lines or records written during training: --log, --tensorboard and --losses.
// Contract: allocates nothing after the constructor unless a write fails. A failed write does not stop the training:
// the file ends with its last complete line, later lines are dropped, and finish() throws the Error. Without a file,
// does nothing.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <optional>

#include "graphrun/output_file.h"

namespace graphrun::cli {

class LineFile {
 public:
  explicit LineFile(OutputFile* file);  // null: no file
  explicit LineFile(std::optional<OutputFile>& file) : LineFile(file ? &*file : nullptr) {}

  bool wanted() const { return file_ != nullptr; }
  fmt::memory_buffer& line() { return lines_; }  // append, then call end_line(), or flush() for binary data
  void end_line();
  void flush();        // writes the buffer; also called when it is nearly full
  void flush_soon();   // the same, unless that was less than 20 ms ago: a write per row can take as long as the steps
  void check() const;  // throws the error of a failed write
  void finish();       // call after the last line

 private:
  OutputFile* file_;
  fmt::memory_buffer lines_;
  std::exception_ptr failure_;
  std::chrono::steady_clock::time_point flushed_{};
};

}  // namespace graphrun::cli
