// run_folder.h: creates and fills the folder that --run-dir gives each training.
// Contract: run.json and model.json exist from the start, result.json once the run has ended. The log is written in
// addition to those of the command line; weights only if it names no other file. Folder names count up, or are
// --run-name, which replaces an unfinished run. result.json is written last, when the other files are on the disk, so a
// run that has it is complete even after a crash of the machine. Throws Error (kind input; kind run for a file that
// cannot be written). Not handled here: reading (graphrun/run_folder.h).
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>

#include "cli/command_line/arguments.h"
#include "graphrun/session.h"

namespace graphrun::cli {

// A run that has ended, but whose files are not on the disk and which has no result.json.
struct UnsyncedRun {
  std::string folder;  // empty: nothing to complete
  std::string result;  // JSON

  // A caller completes several runs together by write_result(), sync(), name_result() and sync(), each for all of them.
  void write_result() const;  // under another name
  void name_result() const;   // names result.json
  // Returns when the files of the run are on the disk. `synced`: file systems that the calls for other runs have
  // synced, and whether without an error. Syncing each file would take as long as thousands of steps.
  void sync(std::map<::dev_t, bool>& synced) const;
};

class RunFolder {
 public:
  // Creates the folder and directs the outputs in `arguments` to it. Does nothing without --run-dir. If `unsynced` is
  // not null, end() stores the run there and leaves completing it to the caller.
  explicit RunFolder(Arguments& arguments, UnsyncedRun* unsynced = nullptr);
  ~RunFolder();  // removes the folder if the run did not begin
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  void begin(const Session& session);
  void write_changes(std::string_view changes) const;  // JSON of all hyperparameter changes so far
  void end(std::string_view result) const;             // JSON

 private:
  std::string file(std::string_view name) const;

  const Arguments& arguments_;
  UnsyncedRun* unsynced_;
  std::string folder_;  // empty: no --run-dir
  bool begun_ = false;
};

}  // namespace graphrun::cli
