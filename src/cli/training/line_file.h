// line_file.h: append-only file of lines or records written during training: --log, --tensorboard and --losses.
// Contract: allocates nothing after the constructor unless a write fails. A failed write does not stop the training:
// the file ends with its last complete line, later lines are dropped, and finish() throws the Error. Without a file,
// does nothing.
#pragma once

#include <fmt/format.h>

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
  void check() const;  // throws the error of a failed write
  void finish();       // call after the last line

 private:
  OutputFile* file_;
  fmt::memory_buffer lines_;
  std::exception_ptr failure_;
};

}  // namespace graphrun::cli
