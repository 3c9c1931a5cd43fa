#include "studio/worker.h"

#include <chrono>
#include <csignal>
#include <utility>

namespace graphrun::studio {

// The worker's thread inherits a mask that blocks all signals, so that they interrupt poll() in the server's thread.
Worker::Worker() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    jobs_.clear();
  }
  wake_.notify_all();
  thread_.join();
}

void Worker::post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (!ends_) jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
}

bool Worker::next(Job& job, std::optional<double> seconds) {
  std::unique_lock lock(mutex_);
  const auto is_due = [this] { return ends_ || !jobs_.empty(); };
  if (!seconds)
    wake_.wait(lock, is_due);
  else
    wake_.wait_for(lock, std::chrono::duration<double>(*seconds), is_due);
  if (jobs_.empty()) return false;
  job = std::move(jobs_.front());
  jobs_.pop_front();
  return true;
}

void Worker::serve(bool wait) {
  for (Job job; next(job, wait ? std::optional<double>() : 0.0); wait = false) job();
}

void Worker::serve_for(double seconds) {
  for (Job job; next(job, seconds); seconds = 0) job();
}

void Worker::run() {
  for (Job job; next(job, std::nullopt);) {
    job();
    job = nullptr;
  }
}

}  // namespace graphrun::studio
