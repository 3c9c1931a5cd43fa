// result_file.h: where the results of a command go: to the file of --output, else to stdout.
// Contract: the file is opened first, so that an invalid name fails before any work is done, and replaces the old one
// when complete. Throws Error (kind input) if it is not writable, or one of the files that the command reads.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/terminal.h"
#include "graphrun/error.h"
#include "graphrun/output_file.h"

namespace graphrun::cli {

class ResultFile {
 public:
  // `code`: error code if the file is not writable. `hint`: for a file in `read`, where empty names are skipped.
  ResultFile(const std::string& path, const char* code, const std::vector<std::string>& read = {},
             std::string hint = "an output must not replace a file that the run reads, or another output") {
    if (path.empty()) return;
    file_.emplace(path, code);
    for (const std::string& one : read) {
      if (one.empty() || !file_->is(one)) continue;
      throw Error(ErrorKind::input, "output.input", fmt::format("--output '{}' is a file that is read", path),
                  std::move(hint));
    }
  }
  bool is_stdout() const { return !file_.has_value(); }
  OutputFile& file() { return *file_; }  // unless is_stdout()
  void append(std::string_view text) { file_ ? file_->write(text) : write_results(text); }
  void finish() {
    if (file_) file_->commit();
  }
  void write(std::string_view text) {
    append(text);
    finish();
  }

 private:
  std::optional<OutputFile> file_;
};

}  // namespace graphrun::cli
