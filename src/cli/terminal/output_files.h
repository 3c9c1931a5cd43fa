// output_files.h: output files of a run besides stdout, opened before the work starts.
// Contract: the constructor opens every file that the command line names (output_file.h). It throws Error (kind input)
// for a file that is not writable or named twice, and for one that the run reads (model, weights, plug-in) or that
// stdout or stderr writes to. reject_read() checks the data files, once known. connect() waits for the readers of
// pipes, so that finished training never has to.
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
  ~OutputFiles();  // removes the --tensorboard folder if this run created it and it is empty
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  void reject_read(const Model& model) const;
  void connect(Diagnostics& diagnostics);

  std::vector<OutputFile> logs;
  bool rows_together = false;        // rows of a log may wait for later ones (text_logs.h)
  std::optional<OutputFile> events;  // in the --tensorboard folder
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
