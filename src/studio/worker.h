// worker.h: a thread that runs jobs one at a time, in the order of post().
// Contract: post() may be called from any thread and never blocks on a job. A long job (a training) can run the queued
// jobs by calling serve(). Jobs must not throw. The destructor waits for the current job and discards the rest.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace graphrun::studio {

class Worker {
 public:
  using Job = std::function<void()>;

  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void post(Job job);

  // Runs the queued jobs; call it only within a job. `wait`: blocks until there is at least one.
  void serve(bool wait);
  void serve_for(double seconds);  // runs jobs until the time is over; returns early after one

 private:
  bool next(Job& job, std::optional<double> seconds);  // without a limit if nullopt
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool ends_ = false;
  std::thread thread_;  // last member: its thread uses the others
};

}  // namespace graphrun::studio
