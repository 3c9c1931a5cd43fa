// ranks.h: the processes that train one network together: --ranks, or those of a launcher (docs/guide/ranks.md).
// Contract: rank 0 is this process if --ranks starts the others; it alone opens output files and prints. Otherwise
// follows the launcher's variables. Without either, changes nothing. Not here: what ranks send (communicator.h).
#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "cli/command_line/arguments.h"
#include "cli/command_line/diagnostics.h"
#include "graphrun/communicator.h"

namespace graphrun::cli {

class Ranks {
 public:
  // Waits for the other ranks.
  Ranks(const Arguments& arguments, Diagnostics& diagnostics);
  ~Ranks();  // ends when the processes that it started have ended
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  const Arguments& arguments() const { return arguments_; }  // those of this rank
  bool prints() const { return communicator_ == nullptr || communicator_->rank() == 0; }
  // For the handler of an exception. Returns whether this rank prints it: one does.
  bool leave(const Error& error);

 private:
  void start(const RankPlace& place);

  Arguments arguments_;
  std::shared_ptr<Communicator> communicator_;  // null: no other ranks
  std::vector<pid_t> children_;
  bool failed_ = false;
};

}  // namespace graphrun::cli
