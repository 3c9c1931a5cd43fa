// rank_jobs.h: the runs of a sweep for the ranks that share them (docs/guide/ranks.md).
// Contract: rank 0 has the queue. The other ranks ask it for runs and report their ends, each over its own connection.
// A connection that breaks returns the runs of that rank to the queue; a rank that loses rank 0 stops as after SIGTERM.
// Any thread may call. Not here: how a run trains (jobs.h).
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "cli/stored_runs/jobs.h"
#include "cli/terminal/interrupt.h"
#include "graphrun/communicator.h"

namespace graphrun::cli {

struct RankRequest;
struct RankAnswer;

// Rank 0, also without other ranks.
class JobQueue {
 public:
  // `pairs`: with ranks 1, 2, ... `folder` identifies the folder of the sweep, for the other ranks. `lost` gets the
  // message about a lost rank.
  JobQueue(std::span<const std::shared_ptr<Communicator>> pairs, std::int64_t folder,
           std::function<void(std::string_view)> lost);
  ~JobQueue();  // waits for the other ranks
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  std::size_t ranks() const { return threads_.size() + 1; }
  // Begins the next round, numbered from 1. Calls `ended` for the runs of all ranks, one call at a time, until the
  // result is destroyed.
  [[nodiscard]] std::shared_ptr<void> begin(const std::vector<std::size_t>& jobs, OnJobEnd ended);
  // A job for this rank. Without one, waits as long as other ranks train. None: the round is over.
  std::optional<std::size_t> take();
  void end(const JobEnd& end);

 private:
  void serve(Communicator& pair, int rank);
  RankAnswer answer(const RankRequest& request, int rank, std::set<std::size_t>& running);

  std::int64_t folder_;
  std::function<void(std::string_view)> lost_;
  std::mutex mutex_;  // protects the variables below
  std::condition_variable changed_;
  std::deque<std::size_t> waiting_;
  std::size_t away_ = 0;  // runs of other ranks
  std::size_t round_ = 0;
  OnJobEnd ended_;
  bool over_ = false;
  std::vector<std::jthread> threads_;  // one for each pair
};

// Another rank.
class RemoteJobs {
 public:
  explicit RemoteJobs(std::shared_ptr<Communicator> pair);
  ~RemoteJobs();
  RemoteJobs(const RemoteJobs&) = delete;
  RemoteJobs& operator=(const RemoteJobs&) = delete;

  std::int64_t folder() const { return folder_; }
  // Waits for the next round. None: the sweep is over or interrupted. Throws Error if rank 0 is lost.
  std::optional<std::size_t> next_round();
  std::optional<std::size_t> take();
  void end(const JobEnd& end);

 private:
  RankAnswer ask(const RankRequest& request);
  void throw_if_lost();
  std::optional<std::size_t> wait_for(const RankRequest& request);

  const Interruptible interruptible_;
  std::shared_ptr<Communicator> pair_;
  std::int64_t folder_ = 0;
  std::size_t round_ = 0;
  std::mutex mutex_;          // protects the variables below
  std::exception_ptr error_;  // rank 0 is lost
  bool stopped_ = false;
  std::jthread watch_;
};

}  // namespace graphrun::cli
