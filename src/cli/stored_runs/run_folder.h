// run_folder.h: creates and fills the folder that --run-dir gives each training.
// Contract: run.json and model.json exist from the start, result.json once the run has ended. The log is written in
// addition to those of the command line; weights only if it names no other file. Folder names count up, or are
// --run-name, which replaces an unfinished run. Throws Error (kind input). Not handled here: reading
// (graphrun/run_folder.h).
#pragma once

#include <string>
#include <string_view>

#include "cli/command_line/arguments.h"
#include "graphrun/session.h"

namespace graphrun::cli {

class RunFolder {
 public:
  // Creates the folder and directs the outputs in `arguments` to it. Does nothing without --run-dir.
  explicit RunFolder(Arguments& arguments);
  ~RunFolder();  // removes the folder if the run did not begin
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  void begin(const Session& session);
  void write_changes(std::string_view changes) const;  // JSON of all hyperparameter changes so far
  void end(std::string_view result) const;             // JSON

 private:
  std::string file(std::string_view name) const;

  const Arguments& arguments_;
  std::string folder_;  // empty: no --run-dir
  bool begun_ = false;
};

}  // namespace graphrun::cli
