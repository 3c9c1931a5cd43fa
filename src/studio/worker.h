// worker.h: a thread that does one thing after the other, in the order in which they were asked for.
// Contract: post() may be called by any thread and never waits for what is done. A job that takes long (a training)
// may do the others that wait, by serve(), at places where it can. Jobs throw nothing. The destructor lets the job that
// is under way end, and forgets the rest.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
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

  // From within a job: does what waits. `wait`: first until there is something.
  void serve(bool wait);

 private:
  bool next(Job& job, bool wait);
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool ends_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace graphrun::studio
