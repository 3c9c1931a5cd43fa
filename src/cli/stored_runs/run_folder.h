// run_folder.h: the folder of its own that a training gets by --run-dir: made before it, filled as it goes.
// Contract: run.json and model.json are there from the beginning, result.json only when the run has ended; the log,
// beside those that the command line names, and weights where it names no other file. Names of folders count up, or are
// --run-name, which takes an unfinished run's place. Throws Error (kind input). Leaves to others: reading
// (graphrun/run_folder.h).
#pragma once

#include <string>
#include <string_view>

#include "cli/command_line/arguments.h"
#include "graphrun/session.h"

namespace graphrun::cli {

class RunFolder {
 public:
  // Makes the folder, and has `arguments` write there. Without --run-dir nothing happens.
  explicit RunFolder(Arguments& arguments);
  ~RunFolder();  // a run that did not begin leaves none
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  void begin(const Session& session);
  void write_changes(std::string_view changes) const;  // JSON: of numbers that were changed so far
  void end(std::string_view result) const;             // JSON

 private:
  std::string file(std::string_view name) const;

  const Arguments& arguments_;
  std::string folder_;  // empty: there is none
  bool begun_ = false;
};

}  // namespace graphrun::cli
