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

#include "cli/command_line/arguments.h"
#include "cli/command_line/diagnostics.h"
#include "graphrun/output_file.h"

namespace graphrun::cli {

class OutputFiles {
 public:
  explicit OutputFiles(const Arguments& arguments);
  ~OutputFiles();  // the folder of --tensorboard, if it was made here and nothing is in it
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  void reject_read(const Model& model) const;
  void connect(Diagnostics& diagnostics);

  std::vector<OutputFile> logs;
  std::optional<OutputFile> events;  // in the folder of --tensorboard
  std::optional<OutputFile> losses, weights, trace, dump, report, certificate, array;

 private:
  struct FlagFile {
    std::string_view flag;
    const OutputFile* file;
  };
  std::vector<FlagFile> opened() const;
  void open_events(const std::string& folder);
  void reject(const std::string& path, std::string_view what) const;

  std::string made_folder_;
};

}  // namespace graphrun::cli
