// ranks.h: the processes that train together: --ranks, or those of a launcher; or threads: --gpus
// (docs/guide/ranks.md). Contract: rank 0 is this process (thread) if --ranks (--gpus) starts the others; it alone
// prints, and opens the output files of one network. Otherwise follows the launcher's variables. Without any, changes
// nothing. Not here: what ranks send (communicator.h, rank_jobs.h).
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "cli/command_line/arguments.h"
#include "cli/command_line/diagnostics.h"
#include "graphrun/communicator.h"

namespace graphrun::cli {

class Ranks {
 public:
  enum class Share { batches, runs };  // ranks train one network, or whole networks
  // Waits for the other ranks.
  Ranks(const Arguments& arguments, Diagnostics& diagnostics, Share share);
  ~Ranks();  // ends when the processes and threads that it started have ended
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  const Arguments& arguments() const { return arguments_; }  // those of this rank
  int rank() const { return rank_; }
  // With Share::runs, pairs of ranks (communicator.h); none without other ranks.
  std::span<const std::shared_ptr<Communicator>> pairs() const { return communicators_; }
  // For the handler of an exception. Returns whether this rank prints it: one does.
  bool leave(const Error& error);

 private:
  void start(const RankPlace& place);
  void use_mpi(Diagnostics& diagnostics, Share share);
  void start_threads();

  Arguments arguments_;
  int rank_ = 0;
  std::vector<std::shared_ptr<Communicator>> communicators_;
  std::vector<pid_t> children_;
  std::vector<std::jthread> threads_;
  bool failed_ = false;
};

}  // namespace graphrun::cli
