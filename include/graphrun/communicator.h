// communicator.h: moves bytes between the ranks of one training (docs/guide/ranks.md).
// Contract: every rank makes the same calls in the same order, one thread at a time; a rank that does not is an Error
// of the others. A Communicator moves bytes and never adds numbers (members.h does).
// A call waits however long another rank computes, but throws Error (kind device, code "ranks.lost") on all ranks as
// soon as the connection to one is gone. Not here: what is sent (session).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graphrun/export.h"

namespace graphrun {

class GRAPHRUN_API Communicator {
 public:
  virtual ~Communicator();
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual std::string transport() const;  // for messages: "TCP", "shared memory", "MPI (Open MPI)"
  // On rank 0, `all` gets the bytes of every rank, in rank order; elsewhere it may be empty. Equal sizes on all ranks.
  virtual void gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // Every rank gets the bytes of rank 0.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  // Throws Error (code "ranks.lost") if a rank is gone or has left. Does not wait.
  virtual void look();
  // This rank ends with an error: the next call of the others throws "rank 3: why". It makes no further calls.
  virtual void leave(std::string_view why) noexcept;
};

// Ranks in threads of this process: element r is for the thread of rank r.
GRAPHRUN_API std::vector<std::shared_ptr<Communicator>> thread_ranks(int ranks, bool share_memory = false);
// The processes of mpirun, over MPI; opens libgraphrun_mpi.so. Once per process. Throws Error (code "mpi...").
GRAPHRUN_API std::shared_ptr<Communicator> mpi_ranks();

// Place of a process among the ranks of its job, and the address at which rank 0 listens.
struct RankPlace {
  int rank = 0, ranks = 1;
  std::string host = "127.0.0.1";
  int port = 0;        // 0 on rank 0: any free one
  std::string secret;  // proves that a rank belongs to the job; empty: only ranks of this host may join
};
// From the variables of `graphrun --ranks`, mpirun, srun or torchrun; nothing if the process is not one of several.
// Throws Error (kind input) for variables that contradict each other.
GRAPHRUN_API std::optional<RankPlace> launched_place();

// A job under way: rank 0 listens from the constructor on.
class GRAPHRUN_API RankJob {
 public:
  explicit RankJob(RankPlace place);
  ~RankJob();
  RankJob(const RankJob&) = delete;
  RankJob& operator=(const RankJob&) = delete;
  int port() const;
  // Waits for all ranks. Calls `waits` about every 50 ms: with "", and once, after five seconds, with a text about
  // missing ranks; an exception from it ends the wait.
  // Throws Error (kind device, code "ranks.missing") after `seconds`, or if rank 0 does not accept this rank.
  std::shared_ptr<Communicator> join(double seconds = 60, const std::function<void(std::string_view)>& waits = {});
  // The same, for ranks that do not go in step: on rank 0 a Communicator of two ranks for each other rank, in their
  // order; elsewhere the one with rank 0.
  std::vector<std::shared_ptr<Communicator>> join_in_pairs(double seconds = 60,
                                                           const std::function<void(std::string_view)>& waits = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace graphrun
