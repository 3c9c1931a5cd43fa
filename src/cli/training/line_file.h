// line_file.h: a file that grows by lines or records while a model trains: --log, --tensorboard and --losses.
// Contract: after the constructor nothing is allocated until a write fails. A write that fails does not end the
// training: the file stays at its last whole line, what comes later is dropped, and finish() throws the Error.
// Without a file nothing happens.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <optional>

#include "graphrun/output_file.h"

namespace graphrun::cli {

class LineFile {
 public:
  explicit LineFile(OutputFile* file);  // null: there is none
  explicit LineFile(std::optional<OutputFile>& file) : LineFile(file ? &*file : nullptr) {}

  bool wanted() const { return file_ != nullptr; }
  fmt::memory_buffer& line() { return lines_; }  // append to it, then end_line() or, what is no text, flush()
  void end_line();
  void flush();        // what has gathered goes to the file; by itself when it is much
  void check() const;  // throws what a write threw
  void finish();       // no line will follow

 private:
  OutputFile* file_;
  fmt::memory_buffer lines_;
  std::exception_ptr failure_;
};

}  // namespace graphrun::cli
