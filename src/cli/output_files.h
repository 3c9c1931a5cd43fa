// output_files.h: the files that a run writes beside stdout, opened before there is anything to write.
// Contract: the constructor opens every file that the command line names (output_file.h) and throws Error (kind input)
// for one that cannot be written, two that are the same, and one that is the model, the weights or a plug-in that the
// run reads, or where stdout or stderr goes; refuse_read() does it for the data once it is known what was read.
// connect() waits for the readers of pipes, so that none keeps waiting what was trained.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "diagnostics.h"
#include "graphrun/output_file.h"

namespace graphrun::cli {

class OutputFiles {
 public:
  explicit OutputFiles(const Arguments& arguments);

  void refuse_read(const Model& model) const;
  void connect(Diagnostics& diagnostics);

  std::optional<OutputFile> log, losses, weights, trace, dump, report, array;

 private:
  struct Entry {
    std::string_view flag;
    const OutputFile* file;
  };
  std::vector<Entry> opened() const;
  void refuse(const std::string& path, std::string_view what) const;
};

}  // namespace graphrun::cli
